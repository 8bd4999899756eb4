/* Q2_0: 64 values in 18 bytes. F16 d, qs[16] of four 2-bit levels a byte; value = (level - 1) * d. */
#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"

enum { ELEMENTS = 64, QS = 2, BLOCK_BYTES = 18 };

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block);
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = (float)((block[QS + i / 4] >> 2 * (i % 4) & 3) - 1) * d;
}

/* Encodes a block; d is the largest magnitude. */
static void encode_block(const float *values, uint8_t *block)
{
    float largest = 0;
    for (int i = 0; i < ELEMENTS; i++)
        largest = fabsf(values[i]) > largest ? fabsf(values[i]) : largest;
    float inverse = block32_inverse(largest);
    memset(block + QS, 0, BLOCK_BYTES - QS);
    for (int i = 0; i < ELEMENTS; i++) {
        int level = block32_round(values[i] * inverse);
        int capped = level < 2 ? level : 2;
        block[QS + i / 4] |= (uint8_t)((capped < -1 ? 0 : capped + 1) << 2 * (i % 4));
    }
    f16_store(block, largest);
}

DEFINE_BLOCK_KERNELS(q2_0, ELEMENTS, BLOCK_BYTES)

decode_function q2_0_decode_neon, q2_0_decode_avx2;
encode_function q2_0_encode_neon, q2_0_encode_avx2;

const struct dtype q2_0_dtype = {
    BLOCK_DTYPE(q2_0, "Q2_0", 42, ELEMENTS),
    .n_scales = 1,
    .encode_cost = 300,
    .kernels[CPU_PORTABLE] = {q2_0_decode, q2_0_encode},
    .kernels[CPU_NEON] = {ON_ARM(q2_0_decode_neon), ON_ARM(q2_0_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(q2_0_decode_avx2), ON_X86(q2_0_encode_avx2)},
};
