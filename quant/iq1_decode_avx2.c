/* The decoders of IQ1_S and IQ1_M, a point of eight values at a time. */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/iq1.h"

#include <immintrin.h>

decode_function iq1_s_decode_avx2, iq1_m_decode_avx2;

/* Like iq1_decode_point(). */
static inline void decode_point(const uint8_t *levels, float scale, float shift, float *values)
{
    __m256i eight = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)levels));
    __m256 number = _mm256_cvtepi32_ps(_mm256_sub_epi32(eight, _mm256_set1_epi32(1)));
    number = _mm256_add_ps(number, _mm256_set1_ps(shift));
    _mm256_storeu_ps(values, _mm256_mul_ps(_mm256_set1_ps(scale), number));
}

static inline unsigned load_word(const uint8_t *bytes)
{
    return bytes[0] | (unsigned)bytes[1] << 8;
}

void iq1_s_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    enum { QS = 2, QH = 34, BLOCK_BYTES = 50 };
    const struct grid *grid = grid_of(GRID_IQ1);
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES) {
        float d = f16_load(block);
        for (int j = 0; j < 8; j++) {
            unsigned high = load_word(block + QH + 2 * j);
            float scale = d * (float)(2 * (high >> 12 & 7) + 1), shift = high & 0x8000 ? -IQ1_SHIFT : IQ1_SHIFT;
            for (int k = 0; k < 4; k++, values += IQ_GROUP)
                decode_point(grid_point(grid, block[QS + 4 * j + k] | (high >> 3 * k & 7) << 8), scale, shift, values);
        }
    }
}

void iq1_m_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    enum { QH = 32, SCALES = 48, BLOCK_BYTES = 56 };
    const struct grid *grid = grid_of(GRID_IQ1);
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES) {
        unsigned half = 0;
        for (int k = 0; k < 4; k++)
            half |= load_word(block + SCALES + 2 * k) >> 12 << 4 * k;
        float d = f16_to_f32((uint16_t)half);
        for (int j = 0; j < 16; j++) {
            unsigned share = load_word(block + SCALES + 2 * (j / 4)) >> 3 * (j % 4) & 7;
            float scale = d * (float)(2 * share + 1);
            for (int k = 0; k < 2; k++, values += IQ_GROUP) {
                unsigned high = block[QH + j] >> 4 * k & 15;
                decode_point(grid_point(grid, block[2 * j + k] | (high & 7) << 8), scale,
                             high & 8 ? -IQ1_SHIFT : IQ1_SHIFT, values);
            }
        }
    }
}
