/* F32 and F64, and complex numbers. */
#include "base/little_endian.h"
#include "quant/blocks/dtype.h"

#include <string.h>

/* F32: IEEE 754 binary32, little-endian. */

static void f32_decode(const void *blocks, float *values, size_t n_blocks)
{
    memcpy(values, blocks, n_blocks * sizeof *values);
    little_endian(values, n_blocks, sizeof *values);
}

static void f32_encode(const float *values, void *blocks, size_t n_blocks)
{
    memcpy(blocks, values, n_blocks * sizeof *values);
    little_endian(blocks, n_blocks, sizeof *values);
}

const struct dtype f32_dtype = {
    .name = "F32",
    .view_name = "f32",
    .numpy = "<f4",
    .kind = DTYPE_FLOAT,
    .block_elements = 1,
    .block_bytes = 4,
    .ggml_type = 0,
    .encode_cost = 50,
    .kernels[CPU_PORTABLE] = {f32_decode, f32_encode},
};

/* F64: IEEE 754 binary64, little-endian, rounded to F32 to nearest even. */

static void f64_decode(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++) {
        double value;
        memcpy(&value, bytes + i * sizeof value, sizeof value);
        little_endian(&value, 1, sizeof value);
        values[i] = (float)value;
    }
}

const struct dtype f64_dtype = {
    .name = "F64",
    .numpy = "<f8",
    .kind = DTYPE_FLOAT,
    .block_elements = 1,
    .block_bytes = 8,
    .ggml_type = 28,
    .kernels[CPU_PORTABLE] = {.decode = f64_decode},
};

/* Complex numbers of two F16, F32 or F64: they have no F32 value. */

#define COMPLEX(type, its_name, bytes, its_numpy)                                                                      \
    const struct dtype type = {                                                                                        \
        .name = its_name,                                                                                              \
        .numpy = its_numpy,                                                                                            \
        .kind = DTYPE_COMPLEX,                                                                                         \
        .block_elements = 1,                                                                                           \
        .block_bytes = bytes,                                                                                          \
        .ggml_type = GGML_TYPE_NONE,                                                                                   \
    }

COMPLEX(c32_dtype, "C32", 4, NULL);
COMPLEX(c64_dtype, "C64", 8, "<c8");
COMPLEX(c128_dtype, "C128", 16, "<c16");
