/* IQ1, IQ2 and IQ3, sixteen tries or neighbours at a time. */
#include <immintrin.h>
#include <stdint.h>

#define LANES         16
#define IQ_NAME(name) name##_avx512
#define IQ1_LOOPS     iq1_avx512_loops

typedef __m512 vf;
typedef int32_t vi __attribute__((vector_size(64)));

static const vi lane_numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static inline vf v_load(const float *values)
{
    return _mm512_loadu_ps(values);
}

static inline void v_store(float *values, vf value)
{
    _mm512_storeu_ps(values, value);
}

static inline vf v_root(vf value)
{
    return _mm512_sqrt_ps(value);
}

static inline vi v_load_words(const uint16_t *words)
{
    return (vi)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)words));
}

/* The numbers of a table of eight, which is there twice, by the lowest three bits. */
static inline vf v_look_up(vf table, vi index)
{
    return _mm512_permutexvar_ps((__m512i)index, table);
}

/* Within 0 .. most. */
static inline vi v_clamp(vi level, int most)
{
    return (vi)_mm512_min_epi32(_mm512_max_epi32((__m512i)level, _mm512_setzero_si512()), _mm512_set1_epi32(most));
}

/* Keeps what is less, and what comes with it. */
static inline void v_keep_less(vf *least, vi *with, vf value, vi new_with)
{
    __mmask16 less = _mm512_cmp_ps_mask(value, *least, _CMP_LT_OQ);
    *least = _mm512_mask_mov_ps(*least, less, value);
    *with = (vi)_mm512_mask_mov_epi32((__m512i)*with, less, (__m512i)new_with);
}

static inline float v_least(vf values)
{
    return _mm512_reduce_min_ps(values);
}

/* A bit for each lane whose sums are better than the best so far, as the searches have it. */
static inline uint32_t v_better(vf sum_qx, vf sum_q2, float best)
{
    __mmask16 better = _mm512_cmp_ps_mask(sum_qx * sum_qx, best * sum_q2, _CMP_GT_OQ);
    return _mm512_mask_cmp_ps_mask(better, sum_q2, _mm512_setzero_ps(), _CMP_GT_OQ);
}

static inline vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

/* slope * x + offset, rounded once. */
static inline vf v_line(vf slope, vf x, vf offset)
{
    return _mm512_fmadd_ps(slope, x, offset);
}

/* A bit for each lane; NaN is not above anything. */
static inline uint32_t v_lanes_not_above(vf values, vf most)
{
    return _mm512_cmp_ps_mask(values, most, _CMP_NGT_UQ);
}

/* Keeps what is least, what comes with it, and what is second. */
static inline void v_keep_two(vf *least, vf *second, vi *choice, vf value, int32_t new_choice)
{
    __mmask16 less = _mm512_cmp_ps_mask(value, *least, _CMP_LT_OQ);
    *second = _mm512_min_ps(*second, _mm512_max_ps(value, *least));
    *least = _mm512_min_ps(value, *least);
    *choice = (vi)_mm512_mask_set1_epi32((__m512i)*choice, less, new_choice);
}

static inline uint32_t v_lanes_unlike(vi a, vi b)
{
    return _mm512_cmpneq_epi32_mask((__m512i)a, (__m512i)b);
}

/* Every lane one later, after the last one of `before`. */
static inline vi v_one_later(vi before, vi lanes)
{
    return (vi)_mm512_alignr_epi32((__m512i)lanes, (__m512i)before, 15);
}

/* The first n lanes of one, the others of `rest`. */
static inline vi v_first_lanes(int n, vi lanes, vi rest)
{
    __mmask16 kept = _mm512_cmpgt_epi32_mask(_mm512_set1_epi32(n), (__m512i)lane_numbers);
    return (vi)_mm512_mask_blend_epi32(kept, (__m512i)rest, (__m512i)lanes);
}

static inline vf v_repeat_four(float a, float b, float c, float d)
{
    return _mm512_broadcast_f32x4(_mm_setr_ps(a, b, c, d));
}

/* A bit for each lane. */
static inline uint32_t v_lanes_less(vf values, float than)
{
    return _mm512_cmp_ps_mask(values, _mm512_set1_ps(than), _CMP_LT_OQ);
}

static inline uint32_t v_lanes_equal(vf values, float to)
{
    return _mm512_cmp_ps_mask(values, _mm512_set1_ps(to), _CMP_EQ_OQ);
}

#include "quant/iq_simd.h"

#include "quant/iq1_simd.h"
