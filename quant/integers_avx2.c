#include "quant/dtype.h"

#include <immintrin.h>

decode_function u8_decode_avx2, i8_decode_avx2, u64_decode_avx2;

extern const struct dtype i8_dtype, u64_dtype;

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

/* By way of F64. What has more than its 53 bits loses eleven, which leave one set where they were not all zero, so that
 * it is still rounded to the nearest F32; then it is a number of 2^11. */
static __m128 round_four(__m256i numbers)
{
    const __m256i low_bits = _mm256_set1_epi64x(0xffffffff), none = _mm256_setzero_si256();
    __m256i is_large = _mm256_cmpgt_epi64(_mm256_srli_epi64(numbers, 53), none);
    __m256i has_no_rest = _mm256_cmpeq_epi64(_mm256_and_si256(numbers, _mm256_set1_epi64x(0x7ff)), none);
    __m256i shorter =
        _mm256_or_si256(_mm256_srli_epi64(numbers, 11), _mm256_andnot_si256(has_no_rest, _mm256_set1_epi64x(1)));
    numbers = _mm256_blendv_epi8(numbers, shorter, is_large);
    /* 2^52 + the low half, and 2^84 + the high one: the halves are their mantissas */
    __m256d low =
        _mm256_castsi256_pd(_mm256_or_si256(_mm256_and_si256(numbers, low_bits), _mm256_set1_epi64x(0x433ll << 52)));
    __m256d high =
        _mm256_castsi256_pd(_mm256_or_si256(_mm256_srli_epi64(numbers, 32), _mm256_set1_epi64x(0x453ll << 52)));
    __m256d sum = _mm256_add_pd(_mm256_sub_pd(high, _mm256_set1_pd(0x1p84 + 0x1p52)), low);
    __m256d factor = _mm256_blendv_pd(_mm256_set1_pd(1), _mm256_set1_pd(2048), _mm256_castsi256_pd(is_large));
    return _mm256_cvtpd_ps(_mm256_mul_pd(sum, factor));
}

void u64_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 4 <= n_blocks; i += 4)
        _mm_storeu_ps(values + i, round_four(_mm256_loadu_si256((const __m256i *)(const void *)(bytes + 8 * i))));
    u64_dtype.kernels[CPU_PORTABLE].decode(bytes + 8 * i, values + i, n_blocks - i);
}
