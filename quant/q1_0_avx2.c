#include "quant/dtype.h"
#include "quant/f16.h"

#include <immintrin.h>

enum { ELEMENTS = 128, QS = 2, BLOCK_BYTES = 18 };

decode_function q1_0_decode_avx2;

/* Turns cleared bits into signs. */
void q1_0_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    const __m256i shifts = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    const __m256i sign = _mm256_set1_epi32(INT32_MIN);
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES) {
        __m256i d = _mm256_castps_si256(_mm256_set1_ps(f16_load(block)));
        for (int j = 0; j < ELEMENTS / 8; j++, values += 8) {
            __m256i bits = _mm256_sllv_epi32(_mm256_set1_epi32(block[QS + j]), shifts);
            _mm256_storeu_si256((__m256i *)(void *)values, _mm256_xor_si256(d, _mm256_andnot_si256(bits, sign)));
        }
    }
}
