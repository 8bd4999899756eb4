/* Any bytes as an importance matrix, of either form.
 *
 * Holds for what is accepted: each entry is found by its name, and has values, all of which can be read. */
#include "models/quantize/imatrix.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

static void check_entries(const struct imatrix *imatrix)
{
    const struct imatrix_filter all = {0};
    require(imatrix->n_entries != 0 && imatrix_count(imatrix, &all) == imatrix->n_entries);
    for (size_t i = 0; i < imatrix->n_entries; i++) {
        const struct imatrix_entry *entry = &imatrix->entries[i];
        bool finite = true;
        require(imatrix_find(imatrix, &all, entry->name) == entry && entry->n_values != 0);
        for (uint64_t j = 0; j < entry->n_values; j++)
            finite &= isfinite(entry->values[j]) != 0;
        require(finite == entry->finite);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char directory[] = "/tmp/wfs-fuzz-XXXXXX", path[64];
    struct error error = {""};
    struct arena *arena = arena_new();
    require(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/input", directory);
    FILE *file = fopen(path, "wb");
    require(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    const struct imatrix *imatrix = imatrix_open(path, arena, &error);
    if (imatrix != NULL)
        check_entries(imatrix);
    else
        require_one_line(&error);
    unlink(path);
    rmdir(directory);
    arena_free(arena);
    return 0;
}
