/* Q8_1: 32 values in 36 bytes. F16 d, F16 s (d times the sum of the levels, unused here), i8 qs[32]; value = level * d.
 * ggml makes it from activations: wfs decodes it, but never encodes it. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"

enum { ELEMENTS = 32, SUM = 2, QS = 4, BLOCK_BYTES = 36 };

static inline void decode_block(const uint8_t *restrict block, float *restrict values)
{
    float d = f16_load(block);
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = (float)(int8_t)block[QS + i] * d;
}

DEFINE_BLOCK_DECODERS(q8_1, ELEMENTS, BLOCK_BYTES)

const struct dtype q8_1_dtype = {
    .name = "Q8_1",
    .kind = DTYPE_BLOCK,
    .block_elements = ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 9,
    .n_scales = 2,
    .scale_offset = {0, SUM},
    .kernels[CPU_PORTABLE] = {.decode = q8_1_decode_portable},
    .kernels[CPU_AVX2] = {.decode = ON_X86(q8_1_decode_avx2)},
    .kernels[CPU_AVX512] = {.decode = ON_X86(q8_1_decode_avx512)},
};
