#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/kernels/avx2.h"

enum { ELEMENTS = 64, QS = 2, BLOCK_BYTES = 18 };

decode_function q2_0_decode_avx2;

void q2_0_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    const __m256i shifts = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES) {
        __m256 d = _mm256_set1_ps(f16_load(block));
        for (int j = 0; j < ELEMENTS / 8; j++, values += 8) {
            int word = block[QS + 2 * j] | block[QS + 2 * j + 1] << 8;
            __m256i levels = _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(word), shifts), _mm256_set1_epi32(3));
            levels = _mm256_sub_epi32(levels, _mm256_set1_epi32(1));
            _mm256_storeu_ps(values, _mm256_mul_ps(_mm256_cvtepi32_ps(levels), d));
        }
    }
}

/* Packs the levels of 32 values, four to a byte. */
static inline void store_levels(const struct values32 *values, float inverse, uint8_t *qs)
{
    __m256i integers[4];
    for (int i = 0; i < 4; i++) {
        __m256i rounded = round_away(_mm256_mul_ps(values->part[i], _mm256_set1_ps(inverse)));
        integers[i] = _mm256_add_epi32(_mm256_max_epi32(rounded, _mm256_set1_epi32(-1)), _mm256_set1_epi32(1));
    }
    __m256i levels = _mm256_min_epu8(to_bytes(integers), _mm256_set1_epi8(3));
    __m256i pairs = _mm256_maddubs_epi16(levels, _mm256_set1_epi16(4 << 8 | 1));
    __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(16 << 16 | 1));
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
    _mm_storel_epi64((__m128i *)(void *)qs, _mm_packus_epi16(words, words));
}

static inline void encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    float largest[BATCH] = {0};
    struct scales d;
    for (size_t i = 0; i < n_blocks; i++) {
        struct values32 first = load_values(values + i * ELEMENTS), second = load_values(values + i * ELEMENTS + 32);
        float a = largest_magnitude(&first), b = largest_magnitude(&second);
        largest[i] = a > b ? a : b;
    }
    scales_of(largest, 1, &d);
    for (size_t i = 0; i < n_blocks; i++, values += ELEMENTS, block += BLOCK_BYTES) {
        struct values32 first = load_values(values), second = load_values(values + 32);
        memcpy(block, &d.half[i], sizeof d.half[i]);
        store_levels(&first, d.inverse[i], block + QS);
        store_levels(&second, d.inverse[i], block + QS + 8);
    }
}

DEFINE_AVX2_ENCODER(q2_0, ELEMENTS, BLOCK_BYTES)
