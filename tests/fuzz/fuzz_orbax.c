/* Any bytes as an Orbax checkpoint: four bytes that give the length of manifest.ocdbt, the manifest, and the data file
 * d/x. A reader checks checksums, so the harness corrects those of the manifest and of nodes first, and the length of
 * the manifest. */
#include "formats/tensorflow/table.h"

#include "tests/fuzz/read_tensors.h"

#include <sys/stat.h>

enum { HEAD = 12, CHECKSUM = 4 };

static void correct_frame(uint8_t *frame, size_t length)
{
    uint32_t sum = crc32c(frame, length - CHECKSUM);
    memcpy(frame + length - CHECKSUM, &sum, sizeof sum);
}

static void correct_nodes(uint8_t *bytes, size_t size)
{
    static const uint8_t magic[] = {0x0c, 0xdb, 0x20, 0xde};
    for (size_t i = 0; i + HEAD + CHECKSUM < size; i++) {
        uint64_t length;
        memcpy(&length, bytes + i + sizeof magic, sizeof length);
        if (memcmp(bytes + i, magic, sizeof magic) == 0 && length >= HEAD + CHECKSUM && length <= size - i)
            correct_frame(bytes + i, (size_t)length);
    }
}

/* In memory: a disk would take more time than the parser. */
static char folder[] = "/dev/shm/fuzz_orbax.XXXXXX";

static const char *path_of(const char *name)
{
    static char path[sizeof folder + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    require(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static void remove_folder(void)
{
    unlink(path_of("d/x"));
    unlink(path_of("manifest.ocdbt"));
    rmdir(path_of("d"));
    rmdir(folder);
}

/* Makes the folder of this process, for all inputs. */
static void make_folder(void)
{
    static bool made;
    if (made)
        return;
    require(mkdtemp(folder) != NULL && mkdir(path_of("d"), 0700) == 0);
    made = true;
    atexit(remove_folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct open_options options;
    const struct format *const formats[] = {&orbax_format, NULL};
    uint32_t length = 0;
    if (size < sizeof length)
        return 0;
    memcpy(&length, data, sizeof length);
    length = length < size - sizeof length ? length : (uint32_t)(size - sizeof length);
    uint8_t *bytes = malloc(size);
    memcpy(bytes, data + sizeof length, size - sizeof length);
    size_t n_data = size - sizeof length - length;
    const uint64_t whole = length;
    if (length >= HEAD + CHECKSUM) {
        memcpy(bytes + 4, &whole, sizeof whole);
        correct_frame(bytes, length);
    }
    correct_nodes(bytes + length, n_data);
    make_folder();
    write_file(path_of("manifest.ocdbt"), bytes, length);
    write_file(path_of("d/x"), bytes + length, n_data);
    free(bytes);
    read_path(folder, formats, &options);
    return 0;
}
