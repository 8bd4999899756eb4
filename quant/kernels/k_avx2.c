/* The K formats, eight sub-blocks at a time. */
#define LANES        8
#define K_NAME(name) name##_avx2

#include "quant/blocks/k_search.h"
#include "quant/kernels/q4_q5_avx2.h"
#include "quant/kernels/vectors.h"

/* Rounds LANES numbers and stores how far they are above `low`, an even number, as bytes. */
static inline void v_store_bytes(vf numbers, int low, uint8_t *out)
{
    __m256i first = _mm256_set1_epi32(0x0c080400);
    __m256i bytes = _mm256_shuffle_epi8(_mm256_castps_si256(numbers + (K_ROUND - (float)low)), first);
    __m128i upper = _mm256_extracti128_si256(bytes, 1);
    _mm_storel_epi64((__m128i *)(void *)out, _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), upper));
}

/* Stores LANES numbers like f16_store(). */
static inline void v_store_halves(vf numbers, uint16_t *halves)
{
    float stored[LANES];
    v_store(stored, numbers);
    halves_of(stored, halves);
}

/* Stores 32 levels as q45_pack_levels() does. */
static inline void v_store_levels(const struct q45_format *format, const vf levels[4], uint8_t *block)
{
    __m256i integers[4];
    for (int i = 0; i < 4; i++)
        integers[i] = _mm256_cvttps_epi32(levels[i]);
    q45_store_levels(format, to_bytes(integers), block);
}

/* Loads four values of rows 0 and 4; a row has `length` values. */
static inline vf v_load_quads(const float *rows, int length)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(rows)), _mm_loadu_ps(rows + 4 * length), 1);
}

#include "quant/kernels/k_simd.h"

#include "quant/kernels/q4_q5_simd.h"
