/* Any bytes as an importance matrix, of either form.
 *
 * Holds for what is accepted: each entry is found by its name, and has values, all of which can be read. */
#include "models/quantize/imatrix.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

static bool is_finite(const struct imatrix_entry *entry)
{
    bool finite = true;
    for (uint64_t i = 0; i < entry->n_values; i++)
        finite &= isfinite(entry->values[i]) != 0;
    return finite;
}

/* An entry that a filter leaves out is not found, and is not checked. */
static void check_filter(const struct imatrix *imatrix, const struct imatrix_entry *entry)
{
    struct error error;
    const char *const own[] = {entry->name, NULL};
    const struct imatrix_filter only = {.include = own}, others = {.exclude = own};
    require(imatrix_find(imatrix, &only, entry->name) == entry && imatrix_find(imatrix, &others, entry->name) == NULL);
    require(imatrix_count(imatrix, &only) + imatrix_count(imatrix, &others) == imatrix->n_entries);
    require(entry->finite || !imatrix_check(imatrix, &only, &error));
}

static void check_entries(const struct imatrix *imatrix)
{
    const struct imatrix_filter all = {0};
    require(imatrix->n_entries != 0 && imatrix_count(imatrix, &all) == imatrix->n_entries);
    for (size_t i = 0; i < imatrix->n_entries; i++) {
        const struct imatrix_entry *entry = &imatrix->entries[i];
        const struct tensor tensor = {.rank = 1, .shape = &entry->n_values};
        require(imatrix_find(imatrix, &all, entry->name) == entry && entry->n_values != 0);
        require(is_finite(entry) == entry->finite);
        require(imatrix_importance(entry, &tensor).columns == entry->values);
        check_filter(imatrix, entry);
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
