/* Q1_0: 128 values in 18 bytes. F16 d, a bit for each value; value = d if the bit is set, else -d. */
#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"

enum { ELEMENTS = 128, QS = 2, BLOCK_BYTES = 18 };

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block);
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = block[QS + i / 8] >> i % 8 & 1 ? d : -d;
}

/* Encodes a block; d is the mean magnitude. */
static void encode_block(const float *values, uint8_t *block)
{
    float sum = 0;
    memset(block + QS, 0, BLOCK_BYTES - QS);
    for (int i = 0; i < ELEMENTS; i++) {
        sum += fabsf(values[i]);
        block[QS + i / 8] |= (uint8_t)((values[i] >= 0) << i % 8);
    }
    f16_store(block, sum / ELEMENTS);
}

DEFINE_BLOCK_KERNELS(q1_0, ELEMENTS, BLOCK_BYTES)

decode_function q1_0_decode_neon, q1_0_decode_avx2;
encode_function q1_0_encode_neon, q1_0_encode_avx2;

const struct dtype q1_0_dtype = {
    BLOCK_DTYPE(q1_0, "Q1_0", 41, ELEMENTS),
    .n_scales = 1,
    .encode_cost = 200,
    .kernels[CPU_PORTABLE] = {q1_0_decode, q1_0_encode},
    .kernels[CPU_NEON] = {ON_ARM(q1_0_decode_neon), ON_ARM(q1_0_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(q1_0_decode_avx2), ON_X86(q1_0_encode_avx2)},
};
