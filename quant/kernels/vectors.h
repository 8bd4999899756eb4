/* Vectors of LANES numbers, 8 (AVX2) or 16 (AVX-512), with the primitives of the K and IQ formats' loops. A file
 * compiled for a level defines LANES and includes this header, or vectors_neon.h, before those loops. */
#pragma once

#include <immintrin.h>
#include <stdint.h>

typedef int32_t vi __attribute__((vector_size(4 * LANES)));

#if LANES == 8
#define V(name) _mm256_##name
typedef __m256 vf, vm;
typedef __m256i v_words;
#else
#define V(name) _mm512_##name
typedef __m512 vf;
typedef __m512i v_words;
typedef __mmask16 vm;
#endif

/* Tables of at least eight numbers, and the places in them. */
typedef vf vt;
typedef vi vti;

static inline vf v_set(float value)
{
    return V(set1_ps)(value);
}

static inline vf v_load(const float *values)
{
    return V(loadu_ps)(values);
}

static inline void v_store(float *values, vf value)
{
    V(storeu_ps)(values, value);
}

/* Like the scalar `a > b ? a : b`: NaN gives b. */
static inline vf v_max(vf a, vf b)
{
    return V(max_ps)(a, b);
}

static inline vf v_min(vf a, vf b)
{
    return V(min_ps)(a, b);
}

static inline vf v_abs(vf value)
{
    return V(andnot_ps)(v_set(-0.f), value);
}

static inline vf v_sqrt(vf value)
{
    return V(sqrt_ps)(value);
}

/* Returns slope * x + offset, rounded once. */
static inline vf v_line(vf slope, vf x, vf offset)
{
    return V(fmadd_ps)(slope, x, offset);
}

/* Interleaves in every 128 bits: a0 b0 a1 b1. */
static inline vf v_interleave_low(vf a, vf b)
{
    return V(unpacklo_ps)(a, b);
}

/* Interleaves in every 128 bits: a2 b2 a3 b3. */
static inline vf v_interleave_high(vf a, vf b)
{
    return V(unpackhi_ps)(a, b);
}

/* Rounds numbers below 2^22 to the nearest integer, ties to even. Intel's processors take longer for their own
 * instruction than for two additions. */
static inline vf v_round(vf value)
{
    return value + 12582912.f - 12582912.f;
}

/* Like nearest_int(). */
static inline vi v_nearest(vf value)
{
    return ((vi)(value + 12582912.f) & 0x007fffff) - 0x00400000;
}

/* Limits levels to 0 .. most. */
static inline vi v_clamp(vi level, int most)
{
    return (vi)V(min_epi32)(V(max_epi32)((v_words)level, V(set1_epi32)(0)), V(set1_epi32)(most));
}

#if LANES == 8
#define V_COMPARE(a, b, how) _mm256_cmp_ps(a, b, how)
#else
#define V_COMPARE(a, b, how) _mm512_cmp_ps_mask(a, b, how)
#endif

static inline vm v_less(vf a, vf b)
{
    return V_COMPARE(a, b, _CMP_LT_OQ);
}

static inline vm v_equal(vf a, vf b)
{
    return V_COMPARE(a, b, _CMP_EQ_OQ);
}

static inline vm v_not_less(vf a, vf b)
{
    return V_COMPARE(a, b, _CMP_NLT_UQ);
}

static inline vm v_unequal(vf a, vf b)
{
    return V_COMPARE(a, b, _CMP_NEQ_UQ);
}

static inline vm v_both(vm a, vm b)
{
#if LANES == 8
    return _mm256_and_ps(a, b);
#else
    return _kand_mask16(a, b);
#endif
}

static inline vm v_either(vm a, vm b)
{
#if LANES == 8
    return _mm256_or_ps(a, b);
#else
    return _kor_mask16(a, b);
#endif
}

/* Returns a bit for each lane. */
static inline uint32_t v_bits(vm mask)
{
#if LANES == 8
    return (uint32_t)_mm256_movemask_ps(mask);
#else
    return _cvtmask16_u32(mask);
#endif
}

static inline vf v_select(vm mask, vf yes, vf no)
{
#if LANES == 8
    return _mm256_blendv_ps(no, yes, mask);
#else
    return _mm512_mask_blend_ps(mask, no, yes);
#endif
}
