/* Every block format at every level of this processor: encoding against ggml's blocks, decoding against gguf-py's numbers and,
 * where it has none, ggml's (tests/data/make_blocks.py). */
#include "quant/encoding.h"

#include "tests/unit/check.h"

#include <ctype.h>
#include <stdlib.h>

enum { ELEMENTS = 2560, DECODED = 512 };

static size_t read_data(const char *name, const char *suffix, void *out, size_t capacity)
{
    char path[512];
    snprintf(path, sizeof path, "%s/quant/%s%s", getenv("WFS_TEST_DATA"), name, suffix);
    FILE *file = fopen(path, "rb");
    size_t length = file != NULL ? fread(out, 1, capacity, file) : 0;
    if (file != NULL)
        fclose(file);
    return length;
}

static void check_encode(struct encoding encoding, const char *name, const float *values)
{
    static unsigned char expected[ELEMENTS * 4], made[ELEMENTS * 4];
    size_t length = dtype_bytes(encoding.dtype, ELEMENTS);
    if (!CHECK_NAMED(read_data(name, ".blocks", expected, sizeof expected) == length, name))
        return;
    for (int level = CPU_PORTABLE; level <= (int)cpu_level(); level++) {
        char what[64];
        snprintf(what, sizeof what, "%s encodes as the reference, %s", name, cpu_level_name((enum cpu_level)level));
        memset(made, 0xa5, sizeof made);
        encoding_kernels_at(encoding, (enum cpu_level)level).encode(values, made, ELEMENTS / encoding.dtype->block_elements);
        CHECK_NAMED(memcmp(made, expected, length) == 0, what);
    }
}

/* Formats that are only encoded with an importance have no other blocks. */
static void check_decode(const struct dtype *dtype, const char *name)
{
    static unsigned char blocks[ELEMENTS * 4];
    static float expected[DECODED], decoded[DECODED];
    if (read_data(name, ".blocks", blocks, sizeof blocks) == 0)
        read_data(name, ".weighted.blocks", blocks, sizeof blocks);
    if (!CHECK_NAMED(read_data(name, ".f32", expected, sizeof expected) == sizeof expected, name))
        return;
    for (int level = CPU_PORTABLE; level <= (int)cpu_level(); level++) {
        char what[64];
        snprintf(what, sizeof what, "%s decodes as the reference, %s", dtype->name, cpu_level_name((enum cpu_level)level));
        dtype_kernels_at(dtype, (enum cpu_level)level).decode(blocks, decoded, DECODED / dtype->block_elements);
        CHECK_NAMED(memcmp(decoded, expected, sizeof decoded) == 0, what);
    }
}

int main(void)
{
    static float values[ELEMENTS];
    CHECK(read_data("values", ".f32", values, sizeof values) == sizeof values);
    for (size_t i = 0; dtypes[i] != NULL; i++) {
        char name[16] = {0};
        if (dtypes[i]->kind != DTYPE_BLOCK)
            continue;
        for (size_t j = 0; dtypes[i]->name[j] != '\0' && j + 1 < sizeof name; j++)
            name[j] = (char)tolower((unsigned char)dtypes[i]->name[j]);
        if (dtypes[i]->kernels[CPU_PORTABLE].encode != NULL)
            check_encode(encoding_of(dtypes[i]), name, values);
        check_decode(dtypes[i], name);
    }
    check_encode((struct encoding){&q4_0_dtype, &q4_0_absmax7_rule}, "q4_0_absmax7", values);
    return check_done();
}
