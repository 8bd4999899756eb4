/* The decoders of IQ1_S and IQ1_M, a point of eight values at a time. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/iq1.h"

#include <immintrin.h>

decode_function iq1_s_decode_avx2, iq1_m_decode_avx2;

static inline void decode_point(const uint8_t levels[IQ_GROUP], float scale, float shift, float *values)
{
    __m256i eight = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)levels));
    __m256 number = _mm256_cvtepi32_ps(_mm256_sub_epi32(eight, _mm256_set1_epi32(1)));
    number = _mm256_add_ps(number, _mm256_set1_ps(shift));
    _mm256_storeu_ps(values, _mm256_mul_ps(_mm256_set1_ps(scale), number));
}

void iq1_s_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    iq1_s_decode_by(decode_point, blocks, values, n_blocks);
}

void iq1_m_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    iq1_m_decode_by(decode_point, blocks, values, n_blocks);
}
