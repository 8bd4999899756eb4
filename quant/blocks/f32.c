/* F32: IEEE 754 binary32, little-endian. */
#include "base/little_endian.h"
#include "quant/blocks/dtype.h"

#include <string.h>

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
