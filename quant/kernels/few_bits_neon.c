/* Formats of one or two bits a value: Q1_0, Q2_0, TQ1_0 and TQ2_0. */
#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/ternary.h"
#include "quant/kernels/neon.h"

enum { Q1_0_ELEMENTS = 128, Q2_0_ELEMENTS = 64, QS = 2, Q1_0_BYTES = 18, Q2_0_BYTES = 18 };
enum { TQ2_0_D = 64, TQ2_0_BYTES = 66, TQ1_0_QH = 48, TQ1_0_D = 52, TQ1_0_BYTES = 54 };

/* Spreads bits: -1 where one is set. */
static inline uint8x16_t spread_bits(const uint8_t *bytes)
{
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    return vtstq_u8(vcombine_u8(vdup_n_u8(bytes[0]), vdup_n_u8(bytes[1])), vld1q_u8(bits));
}

extern const struct dtype q1_0_dtype;

decode_function q1_0_decode_neon, q2_0_decode_neon, tq1_0_decode_neon, tq2_0_decode_neon;
encode_function q1_0_encode_neon, q2_0_encode_neon, tq1_0_encode_neon, tq2_0_encode_neon;

void q1_0_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += Q1_0_BYTES)
        for (int j = 0; j < Q1_0_ELEMENTS / 16; j++, values += 16) {
            uint8x16_t ones = vorrq_u8(vmvnq_u8(spread_bits(block + QS + 2 * j)), vdupq_n_u8(1)); /* 1 or -1 */
            store_scaled(values, vreinterpretq_s8_u8(ones), f16_load(block));
        }
}

/* Sums the magnitudes of four blocks in order, with one block a lane. */
static inline float32x4_t q1_0_sums(const float *values)
{
    float32x4_t sums = vdupq_n_f32(0);
    for (int i = 0; i < Q1_0_ELEMENTS; i += 4) {
        float32x4_t rows[4];
        for (int b = 0; b < 4; b++)
            rows[b] = vld1q_f32(values + b * Q1_0_ELEMENTS + i);
        float32x4x2_t even = vzipq_f32(rows[0], rows[2]), odd = vzipq_f32(rows[1], rows[3]);
        for (int half = 0; half < 2; half++) {
            float32x4x2_t columns = vzipq_f32(even.val[half], odd.val[half]);
            sums = vaddq_f32(vaddq_f32(sums, vabsq_f32(columns.val[0])), vabsq_f32(columns.val[1]));
        }
    }
    return sums;
}

/* Packs the signs of eight values: a bit is set if a value is not below 0. */
static inline uint8_t q1_0_bits(const float *values)
{
    static const uint16_t bits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    uint32x4_t low = vcgezq_f32(vld1q_f32(values)), high = vcgezq_f32(vld1q_f32(values + 4));
    uint16x8_t set = vuzp1q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high));
    return (uint8_t)vaddvq_u16(vandq_u16(set, vld1q_u16(bits)));
}

void q1_0_encode_neon(const float *values, void *blocks, size_t n_blocks)
{
    const struct kernels *portable = &q1_0_dtype.kernels[CPU_PORTABLE];
    uint8_t *block = blocks;
    for (; n_blocks >= 4; n_blocks -= 4) {
        float32x4_t means = vdivq_f32(q1_0_sums(values), vdupq_n_f32(Q1_0_ELEMENTS));
        for (int b = 0; b < 4; b++, block += Q1_0_BYTES) {
            f16_store(block, means[b]);
            for (int i = 0; i < Q1_0_ELEMENTS / 8; i++, values += 8)
                block[QS + i] = q1_0_bits(values);
        }
    }
    portable->encode(values, block, n_blocks);
}

void q2_0_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    const uint8x16_t three = vdupq_n_u8(3);
    for (size_t i = 0; i < n_blocks; i++, block += Q2_0_BYTES) {
        uint8x16_t packed = vld1q_u8(block + QS);
        uint8x16x2_t first = vzipq_u8(vandq_u8(packed, three), vandq_u8(vshrq_n_u8(packed, 2), three));
        uint8x16x2_t second = vzipq_u8(vandq_u8(vshrq_n_u8(packed, 4), three), vshrq_n_u8(packed, 6));
        for (int j = 0; j < 2; j++) {
            uint16x8x2_t fours = vzipq_u16(vreinterpretq_u16_u8(first.val[j]), vreinterpretq_u16_u8(second.val[j]));
            for (int k = 0; k < 2; k++, values += 16)
                store_scaled(values, vsubq_s8(vreinterpretq_s8_u16(fours.val[k]), vdupq_n_s8(1)), f16_load(block));
        }
    }
}

/* Packs 16 levels from 0 to 3, four to a byte. */
static inline uint32_t pack_fours(uint8x16_t levels)
{
    uint16x8_t pairs = vreinterpretq_u16_u8(levels);
    pairs = vorrq_u16(vandq_u16(pairs, vdupq_n_u16(3)), vshrq_n_u16(pairs, 6));
    uint32x4_t fours = vreinterpretq_u32_u16(pairs);
    fours = vorrq_u32(vandq_u32(fours, vdupq_n_u32(15)), vshrq_n_u32(fours, 12));
    uint16x4_t words = vmovn_u32(fours);
    uint8x8_t bytes = vmovn_u16(vcombine_u16(words, words));
    return vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
}

void q2_0_encode_neon(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += Q2_0_BYTES) {
        float largest = largest_magnitude(values, Q2_0_ELEMENTS), inverse = block32_inverse(largest);
        f16_store(block, largest);
        for (int j = 0; j < Q2_0_ELEMENTS / 16; j++, values += 16) {
            int32x4_t levels[4];
            for (int k = 0; k < 4; k++) {
                int32x4_t rounded = round_away(vmulq_n_f32(vld1q_f32(values + 4 * k), inverse));
                rounded = vmaxq_s32(vminq_s32(rounded, vdupq_n_s32(2)), vdupq_n_s32(-1));
                levels[k] = vaddq_s32(rounded, vdupq_n_s32(1));
            }
            uint32_t packed = pack_fours(low_bytes(levels));
            memcpy(block + QS + 4 * j, &packed, sizeof packed);
        }
    }
}

/* Like ternary_digits(). */
static inline float find_digits(const float *values, uint8_t digits[TERNARY_ELEMENTS])
{
    float largest = largest_magnitude(values, TERNARY_ELEMENTS), inverse = block32_inverse(largest);
    for (int i = 0; i < TERNARY_ELEMENTS; i += 16) {
        int32x4_t integers[4];
        for (int j = 0; j < 4; j++)
            integers[j] = round_away(vmulq_n_f32(vld1q_f32(values + i + 4 * j), inverse));
        vst1q_u8(digits + i, vandq_u8(vaddq_u8(low_bytes(integers), vdupq_n_u8(1)), vdupq_n_u8(3)));
    }
    return largest;
}

void tq2_0_encode_neon(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += TQ2_0_BYTES, values += TERNARY_ELEMENTS) {
        uint8_t digits[TERNARY_ELEMENTS];
        f16_store(block + TQ2_0_D, find_digits(values, digits));
        for (int j = 0; j < TQ2_0_D; j += 16) {
            const uint8_t *first = digits + j / 32 * 128 + j % 32;
            uint8x16_t packed = vld1q_u8(first + 96);
            for (int k = 2; k >= 0; k--)
                packed = vorrq_u8(vshlq_n_u8(packed, 2), vld1q_u8(first + 32 * k));
            vst1q_u8(block + j, packed);
        }
    }
}

void tq2_0_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += TQ2_0_BYTES, values += TERNARY_ELEMENTS)
        for (int j = 0; j < TQ2_0_D; j += 16) {
            uint8x16_t packed = vld1q_u8(block + j);
            for (int k = 0; k < 4; k++, packed = vshrq_n_u8(packed, 2)) {
                int8x16_t digits = vreinterpretq_s8_u8(vandq_u8(packed, vdupq_n_u8(3)));
                store_scaled(values + j / 32 * 128 + j % 32 + 32 * k, vsubq_s8(digits, vdupq_n_s8(1)),
                             f16_load(block + TQ2_0_D));
            }
        }
}

/* TQ1_0: the digits of 16 bytes are `step` values apart. Returns ceil(number * 256 / 243) of each number of five. */
static inline uint8x16_t fractions_of(const uint8_t *digits, int step)
{
    uint16x8_t halves[2];
    uint8x16_t number = vld1q_u8(digits);
    for (int n = 1; n < 5; n++)
        number = vmlaq_u8(vld1q_u8(digits + n * step), number, vdupq_n_u8(3));
    halves[0] = vmovl_u8(vget_low_u8(number));
    halves[1] = vmovl_high_u8(number);
    uint8x8_t bytes[2];
    for (int i = 0; i < 2; i++) {
        /* number + ceil(13 * number / 243), and 242 at most are added: the quotient by a multiplication */
        uint32x4_t low = vmull_n_u16(vget_low_u16(vmlaq_n_u16(vdupq_n_u16(242), halves[i], 13)), 34522);
        uint32x4_t high = vmull_high_n_u16(vmlaq_n_u16(vdupq_n_u16(242), halves[i], 13), 34522);
        uint16x8_t quotient = vcombine_u16(vshrn_n_u32(vshrq_n_u32(low, 7), 16), vshrn_n_u32(vshrq_n_u32(high, 7), 16));
        bytes[i] = vmovn_u16(vaddq_u16(halves[i], quotient));
    }
    return vcombine_u8(bytes[0], bytes[1]);
}

/* The last four bytes have four digits each. */
static inline void pack_last(const uint8_t *digits, uint8_t *qh)
{
    for (int j = 0; j < 4; j++) {
        unsigned number = 0;
        for (int n = 0; n < 4; n++)
            number = number * 3 + digits[4 * n + j];
        qh[j] = (uint8_t)((number * 3 * 256 + 242) / 243);
    }
}

void tq1_0_encode_neon(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += TQ1_0_BYTES, values += TERNARY_ELEMENTS) {
        uint8_t digits[TERNARY_ELEMENTS];
        f16_store(block + TQ1_0_D, find_digits(values, digits));
        vst1q_u8(block, fractions_of(digits, 32));
        vst1q_u8(block + 16, fractions_of(digits + 16, 32));
        vst1q_u8(block + 32, fractions_of(digits + 160, 16));
        pack_last(digits + 240, block + TQ1_0_QH);
    }
}

/* A digit is the fraction times 3, without what is left of it: 1 from 86 on and 2 from 171 on. */
static inline int8x16_t digits_less_one(uint8x16_t fractions)
{
    int8x16_t one = vreinterpretq_s8_u8(vcgeq_u8(fractions, vdupq_n_u8(86))); /* a mask is -1 */
    int8x16_t two = vreinterpretq_s8_u8(vcgeq_u8(fractions, vdupq_n_u8(171)));
    return vsubq_s8(vsubq_s8(vdupq_n_s8(-1), one), two);
}

static inline void decode_digits(uint8x16_t fractions, int step, float d, float *values)
{
    for (int n = 0; n < 5; n++, fractions = vmulq_u8(fractions, vdupq_n_u8(3)))
        store_scaled(values + n * step, digits_less_one(fractions), d);
}

void tq1_0_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    static const uint8_t powers[16] = {1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27};
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += TQ1_0_BYTES, values += TERNARY_ELEMENTS) {
        float d = f16_load(block + TQ1_0_D);
        uint32_t last;
        decode_digits(vld1q_u8(block), 32, d, values);
        decode_digits(vld1q_u8(block + 16), 32, d, values + 16);
        decode_digits(vld1q_u8(block + 32), 16, d, values + 160);
        memcpy(&last, block + TQ1_0_QH, sizeof last);
        uint8x16_t fractions = vmulq_u8(vreinterpretq_u8_u32(vdupq_n_u32(last)), vld1q_u8(powers));
        store_scaled(values + 240, digits_less_one(fractions), d);
    }
}
