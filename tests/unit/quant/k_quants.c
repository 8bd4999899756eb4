/* The K formats against ggml's own blocks (tests/data/make_k_quants.py). */
#include "quant/dtype.h"

#include "tests/unit/check.h"

#include <stdlib.h>

enum { BLOCKS = 10, ELEMENTS = 256 };

static size_t read_data(const char *name, void *out, size_t capacity)
{
    char path[512];
    snprintf(path, sizeof path, "%s/quant/%s", getenv("WFS_TEST_DATA"), name);
    FILE *file = fopen(path, "rb");
    size_t length = file != NULL ? fread(out, 1, capacity, file) : 0;
    if (file != NULL)
        fclose(file);
    return length;
}

static void encodes_as_ggml(const struct dtype *dtype, const float *values)
{
    unsigned char expected[BLOCKS * 256], made[BLOCKS * 256];
    char name[32];
    size_t length = (size_t)BLOCKS * dtype->block_bytes;
    snprintf(name, sizeof name, "k_%s.bin", dtype->view_name);
    if (!CHECK_NAMED(read_data(name, expected, sizeof expected) == length, name))
        return;
    for (int level = CPU_PORTABLE; level <= (int)cpu_level(); level++) {
        char what[64];
        snprintf(what, sizeof what, "%s encodes as ggml does, %s", dtype->name, cpu_level_name((enum cpu_level)level));
        memset(made, 0xa5, sizeof made);
        dtype_kernels_at(dtype, (enum cpu_level)level).encode(values, made, BLOCKS);
        CHECK_NAMED(memcmp(made, expected, length) == 0, what);
    }
}

/* No value is further from its block's than the coarsest step between levels would allow. */
static void decodes_nearby(const struct dtype *dtype, const float *values)
{
    unsigned char blocks[256];
    float decoded[ELEMENTS];
    struct kernels kernels = dtype_kernels(dtype);
    kernels.encode(values, blocks, 1);
    kernels.decode(blocks, decoded, 1);
    float largest = 0, worst = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        float difference = decoded[i] > values[i] ? decoded[i] - values[i] : values[i] - decoded[i];
        worst = difference > worst ? difference : worst;
        largest = values[i] > largest ? values[i] : -values[i] > largest ? -values[i] : largest;
    }
    CHECK_NAMED(worst > 0 && worst < largest / 2, dtype->name);
}

int main(void)
{
    static const char *const names[] = {"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"};
    static float values[BLOCKS * ELEMENTS];
    CHECK(read_data("k_values.f32", values, sizeof values) == sizeof values);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct dtype *dtype = dtype_by_name(names[i]);
        if (!CHECK_NAMED(dtype != NULL, names[i]))
            continue;
        encodes_as_ggml(dtype, values);
        decodes_nearby(dtype, values);
    }
    return check_done();
}
