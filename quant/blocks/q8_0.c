/* Q8_0: 32 values in 34 bytes. F16 d, i8 qs[32]; value = d * level. d is the largest magnitude over 127; levels round
 * half away from zero. */
#include "quant/blocks/block32.h"
#include "quant/blocks/codes.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/weights.h"

enum { QS = 2, BLOCK_BYTES = 34 };

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        values[i] = (float)(int8_t)block[QS + i] * d;
}

static void encode_block(const float *values, uint8_t *block)
{
    float d = fabsf(largest_by_magnitude(values, BLOCK32_ELEMENTS)) / 127, inverse = block32_inverse(d);
    f16_store(block, d);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        block[QS + i] = (uint8_t)block32_round(values[i] * inverse);
}

DEFINE_BLOCK_KERNELS(q8_0, BLOCK32_ELEMENTS, BLOCK_BYTES)

decode_function q8_0_decode_avx2;
encode_function q8_0_encode_neon, q8_0_encode_avx2;

static inline void nearest(const float *restrict values, uint8_t *restrict block)
{
    float d = f16_load(block);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++) {
        int32_t level = block32_round(d != 0 ? values[i] / d : 0);
        level = level < 127 ? level : 127;
        block[QS + i] = (uint8_t)(level > -128 ? level : -128);
    }
}

DEFINE_BLOCK32_CODES(q8_0, nearest, BLOCK_BYTES, QS)

static float load_scale(const uint8_t *block, float scales[SCALE_FORM_MOST])
{
    return scales[0] = f16_load(block);
}

static const struct scale_form scale_form = {
    .span = SPAN_MAGNITUDE,
    .n_sub_blocks = 1,
    .n_steps = 127,
    .least = 0.999,
    .most = 1.001,
    .reach = 127,
    .load = load_scale,
};

const struct dtype q8_0_dtype = {
    BLOCK_DTYPE(q8_0, "Q8_0", 8, BLOCK32_ELEMENTS),
    .n_scales = 1,
    .encode_cost = 250,
    .kernels[CPU_PORTABLE] = {q8_0_decode, q8_0_encode},
    .kernels[CPU_NEON] = {NULL, ON_ARM(q8_0_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(q8_0_decode_avx2), ON_X86(q8_0_encode_avx2)},
    .codes = BLOCK32_CODES(q8_0),
    .scale_parts = {{0, QS}},
    .scale_form = &scale_form,
};
