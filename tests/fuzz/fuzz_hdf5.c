/* Any bytes as an HDF5 file. A reader checks checksums, so the harness corrects those of structures first, in files
 * whose last byte is odd. */
#include "formats/hdf5/file.h"

#include "tests/fuzz/read_tensors.h"

/* Corrects the checksum of the superblock, and of object headers that have one. */
static void correct_checksums(uint8_t *bytes, size_t size)
{
    enum { SUPERBLOCK = 44, WIDTHS = 3, TIMES = 32, PHASES = 16 };
    uint32_t sum;
    if (size >= SUPERBLOCK + sizeof sum && bytes[8] >= 2) {
        sum = hdf5_lookup3(bytes, SUPERBLOCK);
        memcpy(bytes + SUPERBLOCK, &sum, sizeof sum);
    }
    for (size_t i = 0; i + 32 < size; i++) {
        if (memcmp(bytes + i, "OHDR", 4) != 0)
            continue;
        size_t width = (size_t)1 << (bytes[i + 5] & WIDTHS);
        size_t at = i + 6 + (bytes[i + 5] & TIMES ? 16 : 0) + (bytes[i + 5] & PHASES ? 4 : 0);
        size_t length =
            width <= 2 && at + width <= size ? bytes[at] + (width == 2 ? (size_t)bytes[at + 1] << 8 : 0) : size;
        size_t end = at + width + length;
        if (length > size || end > size - sizeof sum)
            continue;
        sum = hdf5_lookup3(bytes + i, end - i);
        memcpy(bytes + end, &sum, sizeof sum);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.format = NULL};
    uint8_t *bytes = malloc(size + 1);
    memcpy(bytes, data, size);
    if (size > 0 && bytes[size - 1] % 2 != 0)
        correct_checksums(bytes, size);
    fuzz_file(&hdf5_format, &options, "input.h5", bytes, size);
    free(bytes);
    return 0;
}
