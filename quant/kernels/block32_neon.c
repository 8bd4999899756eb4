/* Blocks of 32 values, one at a time: Q4_0 to Q5_1 without importance, Q8_0, and what decodes IQ4_NL, IQ4_XS and MXFP4.
 */
#include "quant/blocks/fp4.h"
#include "quant/blocks/iq4.h"
#include "quant/blocks/q4_q5.h"
#include "quant/blocks/weights.h"
#include "quant/kernels/neon.h"

enum {
    VECTORS = BLOCK32_ELEMENTS / 4,
    Q8_0_QS = 2,
    Q8_0_BYTES = 34,
    IQ4_NL_QS = 2,
    IQ4_NL_BYTES = 18,
    MXFP4_QS = 1,
    MXFP4_BYTES = 17
};

/* Decoding. */

static inline void add_to_each(float *values, float number)
{
    for (int i = 0; i < 16; i += 4)
        vst1q_f32(values + i, vaddq_f32(vld1q_f32(values + i), vdupq_n_f32(number)));
}

/* The nibbles of 16 bytes: the low ones first. */
static inline uint8x16x2_t nibbles_of(const uint8_t *qs)
{
    uint8x16_t bytes = vld1q_u8(qs);
    return (uint8x16x2_t){{vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8(bytes, 4)}};
}

/* Spreads the bits of two bytes: 16 where one is set. */
static inline uint8x16_t fifth_bits(const uint8_t *qh)
{
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t spread = vcombine_u8(vdup_n_u8(qh[0]), vdup_n_u8(qh[1]));
    return vandq_u8(vtstq_u8(spread, vld1q_u8(bits)), vdupq_n_u8(16));
}

static inline void decode_q45(const struct q45_format *format, const uint8_t *block, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, block += format->block_bytes, values += BLOCK32_ELEMENTS) {
        float d = f16_load(block), m = format->has_minimum ? f16_load(block + Q45_M) : 0;
        uint8x16x2_t levels = nibbles_of(block + format->qs);
        for (int half = 0; half < 2; half++) {
            uint8x16_t level = levels.val[half];
            if (format->qh != 0)
                level = vorrq_u8(level, fifth_bits(block + format->qh + 2 * half));
            if (!format->has_minimum)
                level = vsubq_u8(level, vdupq_n_u8((uint8_t)(format->n_levels / 2)));
            store_scaled(values + 16 * half, vreinterpretq_s8_u8(level), d);
            if (format->has_minimum)
                add_to_each(values + 16 * half, m);
        }
    }
}

/* Blocks whose nibbles are places in a table. */
static inline void decode_looked_up(const int8_t *table, const uint8_t *qs, float scale, float *values)
{
    int8x16_t levels = vld1q_s8(table);
    uint8x16x2_t nibbles = nibbles_of(qs);
    for (int half = 0; half < 2; half++)
        store_scaled(values + 16 * half, vqtbl1q_s8(levels, nibbles.val[half]), scale);
}

decode_function iq4_nl_decode_neon, iq4_xs_decode_neon;

void iq4_nl_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += IQ4_NL_BYTES, values += BLOCK32_ELEMENTS)
        decode_looked_up(iq4_levels, block + IQ4_NL_QS, f16_load(block), values);
}

void iq4_xs_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += IQ4_XS_BYTES)
        for (int j = 0; j < IQ4_XS_SUB_BLOCKS; j++, values += BLOCK32_ELEMENTS)
            decode_looked_up(iq4_levels, block + IQ4_XS_QS + 16 * j, iq4_xs_scale(block, j), values);
}

decode_function mxfp4_decode_neon;

void mxfp4_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += MXFP4_BYTES, values += BLOCK32_ELEMENTS)
        decode_looked_up(mxfp4_doubled, block + MXFP4_QS, mxfp4_half_scale(block[0]), values);
}

/* Encoding. */

/* The minimum and the maximum, neither of which is NaN if there is a number. */
static inline void find_range(const float *values, float *ret_minimum, float *ret_maximum)
{
    float32x4_t low = vdupq_n_f32(INFINITY), high = vdupq_n_f32(-INFINITY);
    for (int i = 0; i < VECTORS; i++) {
        float32x4_t four = vld1q_f32(values + 4 * i);
        low = vminnmq_f32(low, four);
        high = vmaxnmq_f32(high, four);
    }
    *ret_minimum = vminnmvq_f32(low);
    *ret_maximum = vmaxnmvq_f32(high);
}

/* As largest_by_magnitude(), which takes the first of equals. */
static inline float find_largest(const float *values)
{
    float minimum, maximum;
    find_range(values, &minimum, &maximum);
    if (!(maximum > 0 || minimum < 0) || maximum == -minimum)
        return largest_by_magnitude(values, BLOCK32_ELEMENTS);
    return maximum > -minimum ? maximum : minimum;
}

/* Stores 32 levels as q45_pack() does. */
static inline void store_levels(const struct q45_format *format, const uint8x16_t levels[2], uint8_t *block)
{
    static const int8_t places[16] = {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7};
    uint8x16_t low = vandq_u8(levels[0], vdupq_n_u8(15));
    vst1q_u8(block + format->qs, vorrq_u8(low, vshlq_n_u8(levels[1], 4)));
    for (size_t half = 0; format->qh != 0 && half < 2; half++) {
        uint8x16_t bits = vshlq_u8(vshrq_n_u8(levels[half], 4), vld1q_s8(places));
        block[format->qh + 2 * half] = vaddv_u8(vget_low_u8(bits));
        block[format->qh + 2 * half + 1] = vaddv_u8(vget_high_u8(bits));
    }
}

static inline void encode_q45_block(const struct q45_format *format, const float *values, uint8_t *block)
{
    uint8x16_t levels[2];
    float d, offset = 0.5f, minimum = 0, maximum;
    if (format->has_minimum) {
        find_range(values, &minimum, &maximum);
        if (!(minimum < 0)) /* which of the zeros comes first counts */
            block32_range(values, &minimum, &maximum);
        d = (maximum - minimum) / (float)(format->n_levels - 1);
    } else {
        d = find_largest(values) / (float)(-format->n_levels / 2);
        offset += (float)(format->n_levels / 2);
    }
    float inverse = block32_inverse(d);
    for (int half = 0; half < 2; half++) {
        int32x4_t integers[4];
        for (int i = 0; i < 4; i++) {
            float32x4_t above = vsubq_f32(vld1q_f32(values + 16 * half + 4 * i), vdupq_n_f32(minimum));
            float32x4_t scaled = vaddq_f32(vmulq_n_f32(above, inverse), vdupq_n_f32(offset));
            int32x4_t level = vminq_s32(truncated(scaled), vdupq_n_s32(format->n_levels - 1));
            integers[i] = vmaxq_s32(level, vdupq_n_s32(0));
        }
        levels[half] = low_bytes(integers);
    }
    f16_store(block, d);
    if (format->has_minimum)
        f16_store(block + Q45_M, minimum);
    store_levels(format, levels, block);
}

static inline void encode_q45(const struct q45_format *format, const float *values, uint8_t *block, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, block += format->block_bytes, values += BLOCK32_ELEMENTS)
        encode_q45_block(format, values, block);
}

/* Flattened, so that the format is a constant in the loops. */
#define DEFINE_KERNELS(name)                                                                                           \
    __attribute__((flatten)) void name##_decode_neon(const void *blocks, float *values, size_t n_blocks)               \
    {                                                                                                                  \
        decode_q45(&name##_format, blocks, values, n_blocks);                                                          \
    }                                                                                                                  \
    __attribute__((flatten)) void name##_encode_neon(const float *values, void *blocks, size_t n_blocks)               \
    {                                                                                                                  \
        encode_q45(&name##_format, values, blocks, n_blocks);                                                          \
    }

DEFINE_KERNELS(q4_0)
DEFINE_KERNELS(q4_1)
DEFINE_KERNELS(q5_0)
DEFINE_KERNELS(q5_1)

encode_function q8_0_encode_neon;

void q8_0_encode_neon(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += Q8_0_BYTES, values += BLOCK32_ELEMENTS) {
        float d = largest_magnitude(values, BLOCK32_ELEMENTS) / 127, inverse = block32_inverse(d);
        f16_store(block, d);
        for (int half = 0; half < 2; half++) {
            int32x4_t integers[4];
            for (int j = 0; j < 4; j++)
                integers[j] = round_away(vmulq_n_f32(vld1q_f32(values + 16 * half + 4 * j), inverse));
            vst1q_u8(block + Q8_0_QS + 16 * half, low_bytes(integers));
        }
    }
}

encode_function q4_0_absmax7_encode_neon;

void q4_0_absmax7_encode_neon(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += Q4_0_BYTES, values += BLOCK32_ELEMENTS) {
        float d = largest_magnitude(values, BLOCK32_ELEMENTS) / 7;
        uint8x16_t levels[2];
        for (int half = 0; half < 2; half++) {
            int32x4_t integers[4];
            for (int j = 0; j < 4; j++) {
                int32x4_t level = round_away(vdivq_f32(vld1q_f32(values + 16 * half + 4 * j), vdupq_n_f32(d)));
                level = vmaxq_s32(vminq_s32(level, vdupq_n_s32(7)), vdupq_n_s32(-8));
                integers[j] = vaddq_s32(d != 0 ? level : vdupq_n_s32(0), vdupq_n_s32(8));
            }
            levels[half] = low_bytes(integers);
        }
        f16_store(block, d);
        store_levels(&q4_0_format, levels, block);
    }
}
