#include "quant/dtype.h"
#include "quant/f16.h"

#include <immintrin.h>

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
