/* Any files as a checkpoint's folder, for formats of several files: shards and their index, zarr, external data.
 *
 * An input is entries, one after the other: the length of a name, a byte; the name, which has '/' for what is below;
 * the length of the file, two bytes, the lower first; and the file. tests/fuzz/pack_folder makes one from a folder. */
#include "models/formats.h"
#include "sources/paths.h"

#include "tests/fuzz/read_tensors.h"

#include <ftw.h>
#include <sys/stat.h>

enum { MOST_FILES = 24, MOST_NAME = 64 };

/* In memory: a disk would take more time than the parsers. */
static char folder[] = "/dev/shm/wfs-fuzz-XXXXXX";

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    return remove(path);
}

static void write_entry(const char *name, const uint8_t *bytes, size_t length)
{
    char path[sizeof folder + MOST_NAME + 2];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = strchr(path + sizeof folder, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "wb"); /* fails where a folder is, or below a file */
    if (file == NULL)
        return;
    fwrite(bytes, 1, length, file);
    fclose(file);
}

static void write_entries(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size;
    for (int i = 0; i < MOST_FILES && end - data > 3; i++) {
        char name[MOST_NAME + 1];
        size_t name_length = *data % MOST_NAME, left = (size_t)(end - data) - 1;
        name_length = name_length < left ? name_length : left;
        memcpy(name, data + 1, name_length);
        name[name_length] = '\0';
        data += 1 + name_length;
        if (end - data < 2)
            return;
        size_t length = (size_t)(data[0] | data[1] << 8);
        data += 2;
        length = length < (size_t)(end - data) ? length : (size_t)(end - data);
        if (inner_path(name, strlen(name)))
            write_entry(name, data, length);
        data += length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.allow_trailing = size % 2 == 0, .optimizer = size % 3 == 0};
    strcpy(folder + sizeof folder - sizeof "XXXXXX", "XXXXXX");
    require(mkdtemp(folder) != NULL);
    write_entries(data, size);
    read_path(folder, formats, &options);
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
