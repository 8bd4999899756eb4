#include "quant/arithmetic/torch_sum.h"

#include <immintrin.h>

enum { LANES = 16 };

static inline __m256 widen(__m128i numbers)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(numbers), 16));
}

/* Rounds to nearest even, which leaves the number in the upper halves, and sets the quiet bit of a NaN. */
static inline __m256i round_up(__m256 values)
{
    __m256i bits = _mm256_castps_si256(values);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}

void weighted_sum_avx2(const struct weighted_terms *terms, size_t first, size_t count, unsigned char *out)
{
    const __m256 divisor = _mm256_set1_ps(terms->divisor);
    size_t i = first;
    for (; i + LANES <= first + count; i += LANES, out += 2 * LANES) {
        __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
        for (size_t j = 0; j < terms->n; j++) {
            __m256i numbers = _mm256_loadu_si256((const __m256i *)(const void *)(terms->numbers[j] + 2 * i));
            __m256 weight = _mm256_set1_ps(terms->weights[j]);
            low = _mm256_fmadd_ps(widen(_mm256_castsi256_si128(numbers)), weight, low);
            high = _mm256_fmadd_ps(widen(_mm256_extracti128_si256(numbers, 1)), weight, high);
        }
        if (terms->divisor != 1) {
            low = _mm256_div_ps(low, divisor);
            high = _mm256_div_ps(high, divisor);
        }
        __m256i packed = _mm256_packus_epi32(round_up(low), round_up(high));
        _mm256_storeu_si256((__m256i *)(void *)out, _mm256_permute4x64_epi64(packed, 0xd8));
    }
    weighted_sum_portable(terms, i, first + count - i, out);
}
