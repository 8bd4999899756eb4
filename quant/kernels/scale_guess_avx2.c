/* The guesses of scale_guess.c, eight sub-blocks at once. Where C compares to choose, the instructions give their
 * second operand for a NaN, too. */
#include "quant/blocks/scale_guess.h"

#include "quant/blocks/f16.h"

#include <immintrin.h>

enum { LANES = 8, MOST_PARTS = 16 };

static inline __m256 load(const float *values)
{
    return _mm256_loadu_ps(values);
}

static inline float least_of(__m256 vector)
{
    __m128 least = _mm_min_ps(_mm256_castps256_ps128(vector), _mm256_extractf128_ps(vector, 1));
    least = _mm_min_ps(least, _mm_movehl_ps(least, least));
    return _mm_cvtss_f32(_mm_min_ss(least, _mm_shuffle_ps(least, least, 1)));
}

static inline float greatest_of(__m256 vector)
{
    __m128 greatest = _mm_max_ps(_mm256_castps256_ps128(vector), _mm256_extractf128_ps(vector, 1));
    greatest = _mm_max_ps(greatest, _mm_movehl_ps(greatest, greatest));
    return _mm_cvtss_f32(_mm_max_ss(greatest, _mm_shuffle_ps(greatest, greatest, 1)));
}

static inline void find_extremes(const float *values, size_t n_parts, float *low, float *high)
{
    const size_t n = SCALE_GUESS_BLOCK / n_parts;
    for (size_t part = 0; part < n_parts; part++, values += n) {
        __m256 least = _mm256_setzero_ps(), greatest = _mm256_setzero_ps();
        for (size_t i = 0; i < n; i += LANES) {
            least = _mm256_min_ps(load(values + i), least);
            greatest = _mm256_max_ps(load(values + i), greatest);
        }
        low[part] = least_of(least);
        high[part] = greatest_of(greatest);
    }
}

/* Returns the bytes of eight scales. */
static inline __m128i fit(const struct scale_guess *guess, __m256 scales)
{
    const __m256 above = _mm256_max_ps(scales, _mm256_set1_ps(guess->lowest));
    const __m256 within = _mm256_min_ps(above, _mm256_set1_ps(guess->highest));
    const __m256i numbers = _mm256_add_epi32(_mm256_cvtps_epi32(within), _mm256_set1_epi32(guess->offset));
    const __m256i low = _mm256_and_si256(numbers, _mm256_set1_epi32(255));
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    return _mm_packus_epi16(words, words);
}

void scale_guess_block_avx2(const struct scale_guess *guess, const float *values, const unsigned char *block,
                            unsigned char *ret_scales)
{
    const __m256 scale = _mm256_set1_ps(f16_load(block + guess->scale));
    const __m256 minimum = _mm256_set1_ps(f16_load(block + guess->minimum)), sign = _mm256_set1_ps(-0.f);
    const size_t n_parts = guess->n_parts;
    float lows[MOST_PARTS], highs[MOST_PARTS];
    find_extremes(values, n_parts, lows, highs);
    for (size_t i = 0; i < n_parts; i += LANES) {
        const __m256 low = load(lows + i), high = load(highs + i), below = _mm256_xor_ps(low, sign);
        const __m256 above = _mm256_cmp_ps(high, below, _CMP_GT_OQ);
        const __m256 range = guess->has_minimums ? _mm256_sub_ps(high, low) : _mm256_blendv_ps(low, high, above);
        const __m256 steps = _mm256_div_ps(range, _mm256_set1_ps(guess->levels));
        __m128i scales = fit(guess, _mm256_div_ps(steps, scale));
        if (guess->has_minimums) {
            const __m128i least = fit(guess, _mm256_div_ps(below, minimum));
            if (guess->masks[1] != 0)
                scales = _mm_or_si128(scales, _mm_slli_epi16(least, 4)); /* 15 at most */
            else
                _mm_storel_epi64((__m128i *)(void *)(ret_scales + n_parts + i), least);
        }
        _mm_storel_epi64((__m128i *)(void *)(ret_scales + i), scales);
    }
}
