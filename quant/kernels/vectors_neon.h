/* Like vectors.h, for NEON: vectors of four numbers. */
#pragma once

#include <arm_neon.h>
#include <stdint.h>

_Static_assert(LANES == 4, "a vector of NEON has four numbers");

typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef float32x4_t vf;
typedef uint32x4_t vm;

/* Tables of eight numbers, and the places in them. */
typedef float vt __attribute__((vector_size(32)));
typedef int32_t vti __attribute__((vector_size(32)));

static inline vf v_set(float value)
{
    return vdupq_n_f32(value);
}

static inline vf v_load(const float *values)
{
    return vld1q_f32(values);
}

static inline void v_store(float *values, vf value)
{
    vst1q_f32(values, value);
}

static inline vm v_less(vf a, vf b)
{
    return vcltq_f32(a, b);
}

static inline vm v_equal(vf a, vf b)
{
    return vceqq_f32(a, b);
}

static inline vm v_not_less(vf a, vf b)
{
    return vmvnq_u32(vcltq_f32(a, b));
}

static inline vm v_unequal(vf a, vf b)
{
    return vmvnq_u32(vceqq_f32(a, b));
}

static inline vm v_both(vm a, vm b)
{
    return vandq_u32(a, b);
}

static inline vm v_either(vm a, vm b)
{
    return vorrq_u32(a, b);
}

/* Returns a bit for each lane. */
static inline uint32_t v_bits(vm mask)
{
    static const uint32_t bits[LANES] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(mask, vld1q_u32(bits)));
}

static inline vf v_select(vm mask, vf yes, vf no)
{
    return vbslq_f32(mask, yes, no);
}

/* Like the scalar `a > b ? a : b`: NaN gives b. NEON's own maximum and minimum treat NaN and zeros of either sign
 * otherwise. */
static inline vf v_max(vf a, vf b)
{
    return v_select(v_less(b, a), a, b);
}

static inline vf v_min(vf a, vf b)
{
    return v_select(v_less(a, b), a, b);
}

static inline vf v_abs(vf value)
{
    return vabsq_f32(value);
}

static inline vf v_sqrt(vf value)
{
    return vsqrtq_f32(value);
}

/* Returns slope * x + offset, rounded once. */
static inline vf v_line(vf slope, vf x, vf offset)
{
    return vfmaq_f32(offset, slope, x);
}

/* Interleaves: a0 b0 a1 b1. */
static inline vf v_interleave_low(vf a, vf b)
{
    return vzip1q_f32(a, b);
}

/* Interleaves: a2 b2 a3 b3. */
static inline vf v_interleave_high(vf a, vf b)
{
    return vzip2q_f32(a, b);
}

/* Rounds to the nearest integer, ties to even. */
static inline vf v_round(vf value)
{
    return vrndnq_f32(value);
}

/* Like nearest_int(). */
static inline vi v_nearest(vf value)
{
    return ((vi)(value + 12582912.f) & 0x007fffff) - 0x00400000;
}

/* Limits levels to 0 .. most. */
static inline vi v_clamp(vi level, int most)
{
    return vminq_s32(vmaxq_s32(level, vdupq_n_s32(0)), vdupq_n_s32(most));
}
