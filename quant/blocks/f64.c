/* F64: IEEE 754 binary64, little-endian, rounded to F32 to nearest even. */
#include "base/little_endian.h"
#include "quant/blocks/dtype.h"

#include <string.h>

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
