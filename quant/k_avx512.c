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

static inline vf v_round(vf value)
{
    return _mm512_roundscale_ps(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
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

static inline vm v_not_less(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ);
}

static inline vm v_unequal(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ);
}

static inline vm v_both(vm a, vm b)
{
    return _kand_mask16(a, b);
}

static inline vm v_either(vm a, vm b)
{
    return _kor_mask16(a, b);
}

static inline uint32_t v_bits(vm mask)
{
    return _cvtmask16_u32(mask);
}

static inline vf v_select(vm mask, vf yes, vf no)
{
    return _mm512_mask_blend_ps(mask, no, yes);
}

static inline vf v_load(const float *values)
{
    return _mm512_loadu_ps(values);
}

static inline void v_store(float *values, vf value)
{
    _mm512_storeu_ps(values, value);
}

/* row[at] = from[at], in a row of 16 with room for one more. The whole row is stored: a store to an address that is
 * known late would hold up the loads after it. */
static inline void v_copy_element(float *row, const float *from, int at)
{
    v_store(row, v_select((vm)(1u << at), v_load(from), v_load(row)));
}

static inline void v_store_bytes(vf levels, uint8_t *out)
{
    _mm_storeu_si128((__m128i *)(void *)out, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(levels)));
}

/* Four values of rows 0, 4, 8 and 12, which are so many values long. */
static inline vf v_load_quads(const float *rows, int length)
{
    vf quads = _mm512_castps128_ps512(_mm_loadu_ps(rows));
    quads = _mm512_insertf32x4(quads, _mm_loadu_ps(rows + 4 * length), 1);
    quads = _mm512_insertf32x4(quads, _mm_loadu_ps(rows + 8 * length), 2);
    return _mm512_insertf32x4(quads, _mm_loadu_ps(rows + 12 * length), 3);
}

/* Of every 128 bits: a0 b0 a1 b1. */
static inline vf v_interleave_low(vf a, vf b)
{
    return _mm512_unpacklo_ps(a, b);
}

/* Of every 128 bits: a2 b2 a3 b3. */
static inline vf v_interleave_high(vf a, vf b)
{
    return _mm512_unpackhi_ps(a, b);
}

#include "quant/k_simd.h"
