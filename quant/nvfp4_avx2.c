#include "quant/avx2.h"
#include "quant/dtype.h"
#include "quant/nvfp4.h"

enum { ELEMENTS = 64, SUB_ELEMENTS = 16, QS = 4, BLOCK_BYTES = 36 };

decode_function nvfp4_decode_avx2;

void nvfp4_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    const __m128i doubled_e2m1 = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES)
        for (int j = 0; j < ELEMENTS / SUB_ELEMENTS; j++, values += SUB_ELEMENTS) {
            __m256 scale = _mm256_set1_ps(nvfp4_half_scale(block[j]));
            __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(block + QS + 8 * j));
            __m128i codes = _mm_unpacklo_epi64(bytes, _mm_srli_epi16(bytes, 4));
            codes = _mm_shuffle_epi8(doubled_e2m1, _mm_and_si128(codes, _mm_set1_epi8(15)));
            __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
            __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(codes, 8)));
            _mm256_storeu_ps(values, _mm256_mul_ps(low, scale));
            _mm256_storeu_ps(values + 8, _mm256_mul_ps(high, scale));
        }
}
