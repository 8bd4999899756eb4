/* The K formats, eight sub-blocks at a time. */
#include "quant/blocks/f16.h"
#include "quant/blocks/k_format.h"
#include "quant/kernels/avx2.h"

#define LANES        8
#define K_NAME(name) name##_avx2

#include "quant/blocks/k_search.h"
#include "quant/kernels/avx2.h"
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

/* Decoders of Q4_K, Q5_K and Q6_K, 32 levels at a time; the files of the formats describe their bytes. */

enum { SUB_ELEMENTS = 32 };

static __m256i load_levels(const uint8_t *bytes)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)bytes);
}

/* Returns the bits of each byte from `shift` up, as many as `mask` has. */
static inline __m256i bits_of(__m256i bytes, int shift, char mask)
{
    return _mm256_and_si256(_mm256_srli_epi16(bytes, shift), _mm256_set1_epi8(mask));
}

static inline __m256 widen(__m256i levels, int eighth)
{
    __m128i half = eighth < 2 ? _mm256_castsi256_si128(levels) : _mm256_extracti128_si256(levels, 1);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eighth % 2 == 0 ? half : _mm_srli_si128(half, 8)));
}

static inline void store_above(float *values, __m256i levels, float scale, float minimum)
{
    for (int i = 0; i < 4; i++) {
        __m256 scaled = _mm256_mul_ps(_mm256_set1_ps(scale), widen(levels, i));
        _mm256_storeu_ps(values + 8 * i, _mm256_sub_ps(scaled, _mm256_set1_ps(minimum)));
    }
}

static void decode_q4_k(const uint8_t *block, float *values)
{
    enum { QS = 16 };
    float scales[Q45_SUB_BLOCKS], minimums[Q45_SUB_BLOCKS];
    q45_load_scales(block, scales, minimums);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        __m256i levels = bits_of(load_levels(block + QS + j / 2 * 32), j % 2 * 4, 15);
        store_above(values + j * SUB_ELEMENTS, levels, scales[j], minimums[j]);
    }
}

static void decode_q5_k(const uint8_t *block, float *values)
{
    enum { QH = 16, QS = 48 };
    float scales[Q45_SUB_BLOCKS], minimums[Q45_SUB_BLOCKS];
    q45_load_scales(block, scales, minimums);
    __m256i fifths = load_levels(block + QH);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        __m256i low = bits_of(load_levels(block + QS + j / 2 * 32), j % 2 * 4, 15);
        __m256i high = _mm256_slli_epi16(bits_of(fifths, j, 1), 4);
        store_above(values + j * SUB_ELEMENTS, _mm256_or_si256(low, high), scales[j], minimums[j]);
    }
}

static void decode_q6_k(const uint8_t *block, float *values)
{
    enum { QH = 128, SCALES = 192, D = 208 };
    float d = f16_load(block + D);
    const int8_t *shares = (const int8_t *)block + SCALES;
    for (int j = 0; j < K_ELEMENTS / SUB_ELEMENTS; j++) {
        int half = j / 4, quarter = j % 4;
        __m256i low = bits_of(load_levels(block + 64 * half + quarter % 2 * 32), quarter / 2 * 4, 15);
        __m256i high = _mm256_slli_epi16(bits_of(load_levels(block + QH + 32 * half), quarter * 2, 3), 4);
        __m256i levels = _mm256_sub_epi8(_mm256_or_si256(low, high), _mm256_set1_epi8(32));
        for (int i = 0; i < 4; i++) {
            __m256 scale = _mm256_set1_ps(d * (float)shares[2 * j + i / 2]);
            _mm256_storeu_ps(values + j * SUB_ELEMENTS + 8 * i, _mm256_mul_ps(scale, widen(levels, i)));
        }
    }
}

DEFINE_K_DECODER(q4_k, avx2, 144)
DEFINE_K_DECODER(q5_k, avx2, 176)
DEFINE_K_DECODER(q6_k, avx2, 210)
