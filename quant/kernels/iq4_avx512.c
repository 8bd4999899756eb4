#include "quant/blocks/dtype.h"
#include "quant/blocks/iq4.h"
#include "quant/kernels/avx2.h"

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

/* The values of the levels. */
static inline __m512 level_numbers(void)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)iq4_levels)));
}

/* What each value adds to the sums, and the midpoint that decides. */
struct choices {
    float midpoint[IQ4_ELEMENTS];
    struct terms {
        float first[IQ4_ELEMENTS];                      /* of the first try */
        float below[IQ4_ELEMENTS], above[IQ4_ELEMENTS]; /* of the others, below the midpoint and from it on */
    } qx, q2;
};

static inline void set_terms(struct terms *terms, int at, __m512 weight, const __m512 q[3], const __m512 factor[3])
{
    float *to[3] = {terms->first, terms->below, terms->above};
    for (int i = 0; i < 3; i++)
        _mm512_storeu_ps(to[i] + at, _mm512_mul_ps(_mm512_mul_ps(weight, q[i]), factor[i]));
}

static inline void find_choices(const float *values, const float *weights, const float inverses[IQ4_TRIES],
                                struct choices *choices)
{
    const __m512 numbers = level_numbers(), last = _mm512_set1_ps(__builtin_inff());
    const __m512 midpoints = _mm512_mask_loadu_ps(last, 0x7fff, iq4_midpoints);
    for (int i = 0; i < IQ4_ELEMENTS; i += 16) {
        __m512 value = _mm512_loadu_ps(values + i), weight = _mm512_loadu_ps(weights + i);
        __m512 a = _mm512_mul_ps(_mm512_set1_ps(inverses[1]), value);
        __m512 b = _mm512_mul_ps(_mm512_set1_ps(inverses[IQ4_TRIES - 1]), value);
        __m512i first = find_nearest(_mm512_mul_ps(_mm512_set1_ps(inverses[0]), value));
        __m512i least = find_nearest(_mm512_min_ps(a, b)), next = _mm512_add_epi32(least, _mm512_set1_epi32(1));
        _mm512_storeu_ps(choices->midpoint + i, _mm512_permutexvar_ps(least, midpoints));
        const __m512 q[3] = {_mm512_permutexvar_ps(first, numbers), _mm512_permutexvar_ps(least, numbers),
                             _mm512_permutexvar_ps(next, numbers)};
        set_terms(&choices->qx, i, weight, q, (const __m512[3]){value, value, value});
        set_terms(&choices->q2, i, weight, q, q);
    }
}

/* The terms of all tries for the value at a place. */
static inline __m512 terms_at(const struct terms *terms, int at, __mmask16 above)
{
    __m512 of_others = _mm512_mask_mov_ps(_mm512_set1_ps(terms->below[at]), above, _mm512_set1_ps(terms->above[at]));
    return _mm512_mask_mov_ps(of_others, 1, _mm512_set1_ps(terms->first[at]));
}

static void sum_up(const float *values, const float *weights, const float inverses[IQ4_TRIES],
                   struct iq4_sums *ret_sums)
{
    struct choices choices;
    __m512 inverse = _mm512_loadu_ps(inverses), sum_qx = _mm512_setzero_ps(), sum_q2 = _mm512_setzero_ps();
    find_choices(values, weights, inverses, &choices);
    for (int i = 0; i < IQ4_ELEMENTS; i++) {
        __m512 scaled = _mm512_mul_ps(inverse, _mm512_set1_ps(values[i]));
        __mmask16 above = _mm512_cmp_ps_mask(scaled, _mm512_set1_ps(choices.midpoint[i]), _CMP_GE_OQ);
        sum_qx = _mm512_add_ps(sum_qx, terms_at(&choices.qx, i, above));
        sum_q2 = _mm512_add_ps(sum_q2, terms_at(&choices.q2, i, above));
    }
    _mm512_storeu_ps(ret_sums->qx, sum_qx);
    _mm512_storeu_ps(ret_sums->q2, sum_q2);
}

static void quantize(const float *values, float inverse, uint8_t levels[IQ4_ELEMENTS])
{
    for (int i = 0; i < IQ4_ELEMENTS; i += 16) {
        __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(values + i), _mm512_set1_ps(inverse));
        _mm_storeu_si128((__m128i *)(void *)(levels + i), _mm512_cvtepi32_epi8(find_nearest(scaled)));
    }
}

const struct iq4_loops iq4_avx512_loops = {signed_largest, sum_up, quantize};
