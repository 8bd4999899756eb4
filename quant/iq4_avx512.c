#include "quant/avx2.h"
#include "quant/dtype.h"
#include "quant/iq4.h"

/* Returns the level nearest to each value, by bisection: comparisons select the next midpoint. */
static inline __m512i find_nearest(__m512 value)
{
    const __m512 midpoints = _mm512_maskz_loadu_ps(0x7fff, iq4_midpoints);
    const __m512 after_one = _mm512_maskz_loadu_ps(0x3fff, iq4_midpoints + 1);
    __mmask16 half = _mm512_cmp_ps_mask(value, _mm512_set1_ps(iq4_midpoints[7]), _CMP_GE_OQ);
    __m512 quarters = _mm512_mask_mov_ps(_mm512_set1_ps(iq4_midpoints[3]), half, _mm512_set1_ps(iq4_midpoints[11]));
    __mmask16 quarter = _mm512_cmp_ps_mask(value, quarters, _CMP_GE_OQ);
    __m512i level = _mm512_maskz_set1_epi32(half, 8);
    level = _mm512_mask_or_epi32(level, quarter, level, _mm512_set1_epi32(4));
    __mmask16 eighth = _mm512_cmp_ps_mask(value, _mm512_permutexvar_ps(level, after_one), _CMP_GE_OQ);
    level = _mm512_mask_or_epi32(level, eighth, level, _mm512_set1_epi32(2));
    __mmask16 sixteenth = _mm512_cmp_ps_mask(value, _mm512_permutexvar_ps(level, midpoints), _CMP_GE_OQ);
    return _mm512_mask_or_epi32(level, sixteenth, level, _mm512_set1_epi32(1));
}

static float search(const float *values, const float *weights)
{
    float largest = signed_largest(values);
    if (__builtin_fabsf(largest) < IQ4_NEGLIGIBLE)
        return 0;
    float inverses[IQ4_TRIES], sums_qx[IQ4_TRIES], sums_q2[IQ4_TRIES];
    iq4_inverses(largest, inverses);
    __m512 numbers =
        _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)iq4_levels)));
    __m512 inverse = _mm512_loadu_ps(inverses), sum_qx = _mm512_setzero_ps(), sum_q2 = _mm512_setzero_ps();
    for (int i = 0; i < IQ4_ELEMENTS; i++) {
        __m512 value = _mm512_set1_ps(values[i]), weight = _mm512_set1_ps(weights[i]);
        __m512 q = _mm512_permutexvar_ps(find_nearest(_mm512_mul_ps(inverse, value)), numbers);
        __m512 weighted = _mm512_mul_ps(weight, q);
        sum_qx = _mm512_add_ps(sum_qx, _mm512_mul_ps(weighted, value));
        sum_q2 = _mm512_add_ps(sum_q2, _mm512_mul_ps(weighted, q));
    }
    _mm512_storeu_ps(sums_qx, sum_qx);
    _mm512_storeu_ps(sums_q2, sum_q2);
    return iq4_best_scale(sums_qx, sums_q2);
}

static void quantize(const float *values, float inverse, uint8_t levels[IQ4_ELEMENTS])
{
    for (int i = 0; i < IQ4_ELEMENTS; i += 16) {
        __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(values + i), _mm512_set1_ps(inverse));
        _mm_storeu_si128((__m128i *)(void *)(levels + i), _mm512_cvtepi32_epi8(find_nearest(scaled)));
    }
}

const struct iq4_loops iq4_avx512_loops = {search, quantize};
