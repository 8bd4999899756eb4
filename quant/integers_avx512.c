#include "quant/dtype.h"

#include <immintrin.h>

decode_function u8_decode_avx512, i64_decode_avx512, u64_decode_avx512;

extern const struct dtype i64_dtype, u64_dtype;

void u8_decode_avx512(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 16 <= n_blocks; i += 16) {
        __m512i sixteen = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(bytes + i)));
        _mm512_storeu_ps(values + i, _mm512_cvtepi32_ps(sixteen));
    }
    u8_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
}

void i64_decode_avx512(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8)
        _mm256_storeu_ps(values + i, _mm512_cvtepi64_ps(_mm512_loadu_si512(bytes + 8 * i)));
    i64_dtype.kernels[CPU_PORTABLE].decode(bytes + 8 * i, values + i, n_blocks - i);
}

void u64_decode_avx512(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8)
        _mm256_storeu_ps(values + i, _mm512_cvtepu64_ps(_mm512_loadu_si512(bytes + 8 * i)));
    u64_dtype.kernels[CPU_PORTABLE].decode(bytes + 8 * i, values + i, n_blocks - i);
}
