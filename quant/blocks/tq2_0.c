/* TQ2_0: 256 values in 66 bytes. qs[64] of four 2-bit digits a byte, F16 d; value = d * (digit - 1). */
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/ternary.h"

enum { D = 64, BLOCK_BYTES = 66 };

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block + D);
    for (int i = 0; i < TERNARY_ELEMENTS; i++)
        values[i] = (float)((block[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) - 1) * d;
}

static void encode_block(const float *values, uint8_t *block)
{
    uint8_t digits[TERNARY_ELEMENTS];
    f16_store(block + D, ternary_digits(values, digits));
    for (int j = 0; j < 64; j++) {
        const uint8_t *digit = digits + j / 32 * 128 + j % 32;
        block[j] = (uint8_t)(digit[0] | digit[32] << 2 | digit[64] << 4 | digit[96] << 6);
    }
}

DEFINE_BLOCK_KERNELS(tq2_0, TERNARY_ELEMENTS, BLOCK_BYTES)

decode_function tq2_0_decode_neon, tq2_0_decode_avx2;
encode_function tq2_0_encode_neon, tq2_0_encode_avx2;

const struct dtype tq2_0_dtype = {
    BLOCK_DTYPE(tq2_0, "TQ2_0", 35, TERNARY_ELEMENTS),
    .n_scales = 1,
    .scale_offset = {D},
    .encode_cost = 300,
    .kernels[CPU_PORTABLE] = {tq2_0_decode, tq2_0_encode},
    .kernels[CPU_NEON] = {ON_ARM(tq2_0_decode_neon), ON_ARM(tq2_0_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(tq2_0_decode_avx2), ON_X86(tq2_0_encode_avx2)},
};
