#include "quant/blocks/dtype.h"

#include <immintrin.h>
#include <string.h>

decode_function f4_decode_avx2;

extern const struct dtype f4_dtype;

/* Looks up the magnitude by three bits; the fourth is the sign. */
void f4_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    const __m256 magnitudes = _mm256_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6);
    const __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    size_t i = 0;
    for (; i + 4 <= n_blocks; i += 4) {
        uint32_t word;
        memcpy(&word, bytes + i, sizeof word);
        __m256i codes = _mm256_srlv_epi32(_mm256_set1_epi32((int)word), shifts);
        __m256i sign = _mm256_slli_epi32(_mm256_and_si256(codes, _mm256_set1_epi32(8)), 28);
        __m256 decoded = _mm256_permutevar8x32_ps(magnitudes, codes); /* by the three lowest bits */
        _mm256_storeu_ps(values + 2 * i, _mm256_or_ps(decoded, _mm256_castsi256_ps(sign)));
    }
    f4_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + 2 * i, n_blocks - i);
}
