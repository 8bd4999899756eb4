/* What kernels with NEON share: 16 values, of which each has a byte. */
#pragma once

#include <arm_neon.h>
#include <stdint.h>

/* Returns four of the levels, from 4 * i on, as numbers. */
static inline float32x4_t four_levels(int8x16_t levels, int i)
{
    int16x8_t eight = i < 2 ? vmovl_s8(vget_low_s8(levels)) : vmovl_high_s8(levels);
    return vcvtq_f32_s32(i % 2 == 0 ? vmovl_s16(vget_low_s16(eight)) : vmovl_high_s16(eight));
}

/* Stores levels times a scale. */
static inline void store_scaled(float *values, int8x16_t levels, float scale)
{
    for (int i = 0; i < 4; i++)
        vst1q_f32(values + 4 * i, vmulq_n_f32(four_levels(levels, i), scale));
}

/* The low byte of each of 16 integers. */
static inline uint8x16_t low_bytes(const int32x4_t integers[4])
{
    uint16x8_t halves[2];
    for (int i = 0; i < 2; i++)
        halves[i] = vuzp1q_u16(vreinterpretq_u16_s32(integers[2 * i]), vreinterpretq_u16_s32(integers[2 * i + 1]));
    return vuzp1q_u8(vreinterpretq_u8_u16(halves[0]), vreinterpretq_u8_u16(halves[1]));
}

/* Gives INT32_MIN for NaN and what does not fit, as block32_truncate() does. */
static inline int32x4_t within_range(int32x4_t converted, float32x4_t values)
{
    return vbslq_s32(vcltq_f32(values, vdupq_n_f32(0x1p31f)), converted, vdupq_n_s32(INT32_MIN));
}

static inline int32x4_t truncated(float32x4_t values)
{
    return within_range(vcvtq_s32_f32(values), values);
}

/* As block32_round() does: halves away from zero. */
static inline int32x4_t round_away(float32x4_t values)
{
    return within_range(vcvtaq_s32_f32(values), values);
}

/* The largest magnitude of `n` values, which are a multiple of four; NaN has none. */
static inline float largest_magnitude(const float *values, int n)
{
    float32x4_t largest = vdupq_n_f32(0);
    for (int i = 0; i < n; i += 4)
        largest = vmaxnmq_f32(largest, vabsq_f32(vld1q_f32(values + i)));
    return vmaxnmvq_f32(largest);
}
