/* The K formats, sixteen sub-blocks at a time. */
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define LANES        16
#define K_NAME(name) name##_avx512

typedef __m512 vf;
typedef __mmask16 vm;

static inline vf v_set(float value)
{
    return _mm512_set1_ps(value);
}

/* As scalar code does it with `a > b ? a : b`: NaN gives b. */
static inline vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

static inline vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

static inline vf v_abs(vf value)
{
    return _mm512_andnot_ps(_mm512_set1_ps(-0.f), value);
}

static inline vf v_sqrt(vf value)
{
    return _mm512_sqrt_ps(value);
}

/* nearest_int(), as a number. */
static inline vf v_nearest(vf value)
{
    __m512i bits = _mm512_castps_si512(value + v_set(12582912.f));
    return _mm512_cvtepi32_ps(
        _mm512_sub_epi32(_mm512_and_si512(bits, _mm512_set1_epi32(0x007fffff)), _mm512_set1_epi32(0x00400000)));
}

static inline vm v_less(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline vm v_equal(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

static inline vm v_both(vm a, vm b)
{
    return _kand_mask16(a, b);
}

static inline vm v_either(vm a, vm b)
{
    return _kor_mask16(a, b);
}

static inline vm v_not(vm mask)
{
    return _knot_mask16(mask);
}

static inline bool v_any(vm mask)
{
    return mask != 0;
}

static inline vf v_select(vm mask, vf yes, vf no)
{
    return _mm512_mask_blend_ps(mask, no, yes);
}

static inline vf v_load(const float *values)
{
    return _mm512_loadu_ps(values);
}

static inline void v_store_bytes(vf levels, uint8_t *out)
{
    _mm_storeu_si128((__m128i *)(void *)out, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(levels)));
}

/* a0 b0 a1 b1 ... */
static inline void v_interleave(vf a, vf b, vf *ret_low, vf *ret_high)
{
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    *ret_low = _mm512_permutex2var_ps(a, low, b);
    *ret_high = _mm512_permutex2var_ps(a, high, b);
}

#include "quant/k_simd.h"
