/* The K formats, sixteen sub-blocks at a time. */
#define LANES        16
#define K_NAME(name) name##_avx512

#include "quant/blocks/k_search.h"
#include "quant/kernels/avx2.h"
#include "quant/kernels/vectors.h"

/* Rounds LANES numbers and stores how far they are above `low`, an even number, as bytes. */
static inline void v_store_bytes(vf numbers, int low, uint8_t *out)
{
    __m512i bits = _mm512_castps_si512(numbers + (K_ROUND - (float)low));
    _mm_storeu_si128((__m128i *)(void *)out, _mm512_cvtepi32_epi8(bits));
}

/* Stores LANES numbers like f16_store(). */
static inline void v_store_halves(vf numbers, uint16_t *halves)
{
    float stored[LANES];
    v_store(stored, numbers);
    for (int i = 0; i < LANES; i += 8)
        halves_of(stored + i, halves + i);
}

/* Stores 32 levels as q45_pack_levels() does. */
static inline void v_store_levels(const struct q45_format *format, const vf levels[2], uint8_t *block)
{
    __m128i bytes[2];
    for (int i = 0; i < 2; i++)
        bytes[i] = _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(levels[i]));
    q45_store_levels(format, _mm256_set_m128i(bytes[1], bytes[0]), block);
}

/* Loads four values of rows 0, 4, 8 and 12; a row has `length` values. */
static inline vf v_load_quads(const float *rows, int length)
{
    vf quads = _mm512_castps128_ps512(_mm_loadu_ps(rows));
    quads = _mm512_insertf32x4(quads, _mm_loadu_ps(rows + 4 * length), 1);
    quads = _mm512_insertf32x4(quads, _mm_loadu_ps(rows + 8 * length), 2);
    return _mm512_insertf32x4(quads, _mm_loadu_ps(rows + 12 * length), 3);
}

/* Returns the level nearest to `value`, limited as in k_search_symmetric(), for an n_max of 4 or 8, and values of less
 * than 16. The low five bits of the sum are the rounded value's place in a table: so limiting and converting takes one
 * operation. */
#define V_MOST_LOOKED_UP 8
static inline vf v_look_up_level(vf value, int n_max)
{
    static const float within_4[32] = {0,  1,  2,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,  3,
                                       -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -3, -2, -1};
    static const float within_8[32] = {0,  1,  2,  3,  4,  5,  6,  7,  7,  7,  7,  7,  7,  7,  7,  7,
                                       -8, -8, -8, -8, -8, -8, -8, -8, -8, -7, -6, -5, -4, -3, -2, -1};
    const float *table = n_max == 4 ? within_4 : within_8;
    return _mm512_permutex2var_ps(v_load(table), (v_words)(value + 12582912.f), v_load(table + LANES));
}

#include "quant/kernels/k_simd.h"

#include "quant/kernels/q4_q5_simd.h"
