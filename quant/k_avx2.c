/* The K formats, eight sub-blocks at a time. */
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define LANES        8
#define K_NAME(name) name##_avx2

typedef __m256 vf, vm;

static inline vf v_set(float value)
{
    return _mm256_set1_ps(value);
}

/* As scalar code does it with `a > b ? a : b`: NaN gives b. */
static inline vf v_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

static inline vf v_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

static inline vf v_abs(vf value)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.f), value);
}

static inline vf v_round(vf value)
{
    return _mm256_round_ps(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vf v_sqrt(vf value)
{
    return _mm256_sqrt_ps(value);
}

/* nearest_int(), as a number. */
static inline vf v_nearest(vf value)
{
    __m256i bits = _mm256_castps_si256(value + v_set(12582912.f));
    return _mm256_cvtepi32_ps(
        _mm256_sub_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x007fffff)), _mm256_set1_epi32(0x00400000)));
}

static inline vm v_less(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

static inline vm v_equal(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}

static inline vm v_not_less(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_NLT_UQ);
}

static inline vm v_unequal(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_NEQ_UQ);
}

static inline vm v_both(vm a, vm b)
{
    return _mm256_and_ps(a, b);
}

static inline vm v_either(vm a, vm b)
{
    return _mm256_or_ps(a, b);
}

static inline uint32_t v_bits(vm mask)
{
    return (uint32_t)_mm256_movemask_ps(mask);
}

static inline vf v_select(vm mask, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, mask);
}

static inline vf v_load(const float *values)
{
    return _mm256_loadu_ps(values);
}

static inline void v_store(float *values, vf value)
{
    _mm256_storeu_ps(values, value);
}

/* row[at] = from[at], in a row of 16 with room for one more. */
static inline void v_copy_element(float *row, const float *from, int at)
{
    row[at] = from[at];
}

static inline void v_store_bytes(vf levels, uint8_t *out)
{
    __m256i numbers = _mm256_cvttps_epi32(levels);
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
    _mm_storel_epi64((__m128i *)(void *)out, _mm_packus_epi16(words, words));
}

/* Four values of rows 0 and 4, which are so many values long. */
static inline vf v_load_quads(const float *rows, int length)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(rows)), _mm_loadu_ps(rows + 4 * length), 1);
}

/* Of every 128 bits: a0 b0 a1 b1. */
static inline vf v_interleave_low(vf a, vf b)
{
    return _mm256_unpacklo_ps(a, b);
}

/* Of every 128 bits: a2 b2 a3 b3. */
static inline vf v_interleave_high(vf a, vf b)
{
    return _mm256_unpackhi_ps(a, b);
}

#include "quant/k_simd.h"
