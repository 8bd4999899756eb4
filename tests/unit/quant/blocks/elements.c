/* Every element type against numpy, ml_dtypes and gguf-py (tests/data/make_elements.py), at every level of this
 * processor. */
#include "quant/blocks/dtype.h"

#include "tests/unit/check.h"
#include "tests/unit/quant/data.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 1 << 16 };

static unsigned char elements[MOST], expected[MOST], made[MOST];
static float values[MOST / 4], numbers[MOST / 4];

/* Which NaN is no part of what these types mean, but for F32, F16 and BF16. */
static bool same(const struct dtype *dtype, float a, float b)
{
    bool bits_matter = dtype == &f32_dtype || dtype == &f16_dtype || dtype == &bf16_dtype;
    return memcmp(&a, &b, sizeof a) == 0 || (!bits_matter && isnan(a) && isnan(b));
}

static void check_decode(const struct dtype *dtype, enum cpu_level level)
{
    size_t n_blocks =
        read_data("quant/elements", dtype->name, "elements", elements, sizeof elements) / dtype->block_bytes;
    size_t n_values = read_data("quant/elements", dtype->name, "f32", numbers, sizeof numbers) / sizeof *numbers;
    bool all = n_values > 0 && n_values == n_blocks * dtype->block_elements;
    dtype_kernels_at(dtype, level).decode(elements, values, all ? n_blocks : 0);
    for (size_t i = 0; i < n_values && all; i++)
        all = same(dtype, values[i], numbers[i]);
    char what[64];
    snprintf(what, sizeof what, "%s decodes, %s", dtype->name, cpu_level_name(level));
    CHECK_NAMED(all, what);
}

static void check_encode(const struct dtype *dtype, enum cpu_level level)
{
    size_t n_values = read_data("quant/elements", "values", "f32", values, sizeof values) / sizeof *values;
    size_t length = read_data("quant/elements", "values", dtype->name, expected, sizeof expected);
    bool same_length = n_values > 0 && length == n_values * dtype->block_bytes;
    dtype_kernels_at(dtype, level).encode(values, made, same_length ? n_values : 0);
    char what[64];
    snprintf(what, sizeof what, "%s encodes, %s", dtype->name, cpu_level_name(level));
    CHECK_NAMED(same_length && memcmp(made, expected, length) == 0, what);
}

int main(void)
{
    for (int level = CPU_PORTABLE; level < CPU_LEVELS; level++) {
        if (!cpu_runs((enum cpu_level)level))
            continue;
        for (size_t i = 0; dtypes[i] != NULL; i++)
            if (dtypes[i]->kind != DTYPE_BLOCK && dtypes[i]->kernels[CPU_PORTABLE].decode != NULL)
                check_decode(dtypes[i], (enum cpu_level)level);
        check_encode(&f16_dtype, (enum cpu_level)level);
        check_encode(&bf16_dtype, (enum cpu_level)level);
    }
    return check_done();
}
