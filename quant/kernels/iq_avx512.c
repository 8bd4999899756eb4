/* IQ1, IQ2 and IQ3, sixteen tries or neighbours at a time. */
#define LANES         16
#define IQ_NAME(name) name##_avx512
#define IQ1_LOOPS     iq1_avx512_loops

#include "quant/kernels/vectors.h"

static const vi lane_numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#define table_places lane_numbers

/* Returns numbers of a table of eight, stored twice, by the lowest three bits. */
static inline vf v_look_up(vt table, vi index)
{
    return _mm512_permutexvar_ps((__m512i)index, table);
}

static inline float v_least(vf values)
{
    return _mm512_reduce_min_ps(values);
}

/* Returns a / b, off by at most V_QUOTIENT_ERROR of it. */
#define V_QUOTIENT_ERROR 0x1p-14f
static inline vf v_about_quotient(vf a, vf b)
{
    return a * _mm512_rcp14_ps(b);
}

static inline uint32_t v_lanes_unlike(vi a, vi b)
{
    return _mm512_cmpneq_epi32_mask((__m512i)a, (__m512i)b);
}

/* Shifts every lane one further, after the last lane of `before`. */
static inline vi v_one_later(vi before, vi lanes)
{
    return (vi)_mm512_alignr_epi32((__m512i)lanes, (__m512i)before, 15);
}

/* Returns the first n lanes of `lanes`, the others of `rest`. */
static inline vi v_first_lanes(int n, vi lanes, vi rest)
{
    __mmask16 kept = _mm512_cmpgt_epi32_mask(_mm512_set1_epi32(n), (__m512i)lane_numbers);
    return (vi)_mm512_mask_blend_epi32(kept, (__m512i)rest, (__m512i)lanes);
}

static inline vt v_repeat_four(float a, float b, float c, float d)
{
    return _mm512_broadcast_f32x4(_mm_setr_ps(a, b, c, d));
}

#include "quant/kernels/iq_simd.h"

#include "quant/kernels/iq1_simd.h"
