#include "quant/dtype.h"

#include <immintrin.h>

decode_function u8_decode_avx2, i8_decode_avx2;

extern const struct dtype i8_dtype;

void u8_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        __m256i eight = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(bytes + i)));
        _mm256_storeu_ps(values + i, _mm256_cvtepi32_ps(eight));
    }
    u8_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
}

void i8_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        __m256i eight = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(bytes + i)));
        _mm256_storeu_ps(values + i, _mm256_cvtepi32_ps(eight));
    }
    i8_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
}
