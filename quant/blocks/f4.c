/* F4: E2M1, two elements a byte, the first in the low nibble (OCP microscaling; the order is torch's). */
#include "quant/blocks/dtype.h"

static void f4_decode(const void *blocks, float *values, size_t n_blocks)
{
    static const float e2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++) {
        values[2 * i] = e2m1[bytes[i] & 15];
        values[2 * i + 1] = e2m1[bytes[i] >> 4];
    }
}

decode_function f4_decode_neon, f4_decode_avx2;

const struct dtype f4_dtype = {
    .name = "F4",
    .kind = DTYPE_FLOAT,
    .block_elements = 2,
    .block_bytes = 1,
    .ggml_type = GGML_TYPE_NONE,
    .kernels[CPU_PORTABLE] = {.decode = f4_decode},
    .kernels[CPU_NEON] = {.decode = ON_ARM(f4_decode_neon)},
    .kernels[CPU_AVX2] = {.decode = ON_X86(f4_decode_avx2)},
};
