/* IQ1, IQ2 and IQ3, four tries or neighbours at a time. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/iq1.h"

#include <arm_neon.h>

#define LANES         4
#define IQ_NAME(name) name##_neon
#define IQ1_LOOPS     iq1_neon_loops

#include "quant/kernels/vectors_neon.h"

static const vi lane_numbers = {0, 1, 2, 3};
static const vti table_places = {0, 1, 2, 3, 4, 5, 6, 7};

/* Returns numbers of a table of eight, by the lowest three bits. */
static inline vf v_look_up(vt table, vi index)
{
    const uint32x4_t bytes_of_place = vdupq_n_u32(0x03020100), bytes_of_number = vdupq_n_u32(0x04040404);
    uint8x16x2_t bytes;
    __builtin_memcpy(&bytes, &table, sizeof bytes);
    uint32x4_t places = vmlaq_u32(bytes_of_place, (uint32x4_t)(index & 7), bytes_of_number);
    return vreinterpretq_f32_u8(vqtbl2q_u8(bytes, vreinterpretq_u8_u32(places)));
}

/* Returns the least number; NaN only if all are NaN. */
static inline float v_least(vf values)
{
    return vminnmvq_f32(values);
}

/* Returns a / b, off by at most V_QUOTIENT_ERROR of it. */
#define V_QUOTIENT_ERROR 0x1p-24f
static inline vf v_about_quotient(vf a, vf b)
{
    return a / b;
}

static inline uint32_t v_lanes_unlike(vi a, vi b)
{
    return v_bits(vmvnq_u32(vceqq_s32(a, b)));
}

/* Shifts every lane one further, after the last lane of `before`. */
static inline vi v_one_later(vi before, vi lanes)
{
    return vextq_s32(before, lanes, LANES - 1);
}

/* Returns the first n lanes of `lanes`, the others of `rest`. */
static inline vi v_first_lanes(int n, vi lanes, vi rest)
{
    return vbslq_s32(vcgtq_s32(vdupq_n_s32(n), lane_numbers), lanes, rest);
}

static inline vt v_repeat_four(float a, float b, float c, float d)
{
    return (vt){a, b, c, d, a, b, c, d};
}

#include "quant/kernels/iq_simd.h"

#include "quant/kernels/iq1_simd.h"

static inline void decode_group(const uint8_t magnitudes[8], const uint8_t levels[IQ_GROUP], uint8_t signs, float scale,
                                float *values)
{
    static const uint8_t bits[IQ_GROUP] = {1, 2, 4, 8, 16, 32, 64, 128};
    uint16x8_t eight = vmovl_u8(vtbl1_u8(vld1_u8(magnitudes), vld1_u8(levels)));
    int16x8_t negative = vmovl_s8(vreinterpret_s8_u8(vtst_u8(vdup_n_u8(signs), vld1_u8(bits))));
    uint32x4_t fours[2] = {vmovl_u16(vget_low_u16(eight)), vmovl_high_u16(eight)};
    int32x4_t masks[2] = {vmovl_s16(vget_low_s16(negative)), vmovl_high_s16(negative)};
    for (int i = 0; i < 2; i++) {
        uint32x4_t scaled = vreinterpretq_u32_f32(vmulq_n_f32(vcvtq_f32_u32(fours[i]), scale));
        scaled = veorq_u32(scaled, vshlq_n_u32(vreinterpretq_u32_s32(masks[i]), 31));
        vst1q_f32(values + 4 * i, vreinterpretq_f32_u32(scaled));
    }
}

void iq_decode_neon(const struct iq_format *format, const uint8_t *blocks, float *values, size_t n_blocks)
{
    iq_decode_by(decode_group, format, blocks, values, n_blocks);
}

/* The decoders of IQ1_S and IQ1_M, a point of eight values at a time. */

decode_function iq1_s_decode_neon, iq1_m_decode_neon;

static inline void decode_point(const uint8_t levels[IQ_GROUP], float scale, float shift, float *values)
{
    int16x8_t eight = vmovl_s8(vsub_s8(vreinterpret_s8_u8(vld1_u8(levels)), vdup_n_s8(1)));
    float32x4_t low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(eight))), high = vcvtq_f32_s32(vmovl_high_s16(eight));
    vst1q_f32(values, vmulq_n_f32(vaddq_f32(low, vdupq_n_f32(shift)), scale));
    vst1q_f32(values + 4, vmulq_n_f32(vaddq_f32(high, vdupq_n_f32(shift)), scale));
}

void iq1_s_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    iq1_s_decode_by(decode_point, blocks, values, n_blocks);
}

void iq1_m_decode_neon(const void *blocks, float *values, size_t n_blocks)
{
    iq1_m_decode_by(decode_point, blocks, values, n_blocks);
}
