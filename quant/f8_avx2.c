/* Eight bits by way of F16, which has room for all of E4M3 and E5M2: what differs is the bias of the exponent, and
 * which bits are not finite. A NaN is the same as the portable kernels'. */
#include "quant/dtype.h"

#include <immintrin.h>

decode_function f8_e4m3_decode_avx2, f8_e5m2_decode_avx2, f8_e8m0_decode_avx2;

extern const struct dtype f8_e4m3_dtype, f8_e5m2_dtype, f8_e8m0_dtype;

static __m128i load_eight(const uint8_t *bytes)
{
    return _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
}

/* NaN with the signs of `values` where `nan` is set. */
static __m256 with_nan(__m256 values, __m256 nan)
{
    __m256 sign = _mm256_and_ps(values, _mm256_set1_ps(-0.0f));
    __m256 quiet = _mm256_or_ps(sign, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)));
    return _mm256_blendv_ps(values, quiet, nan);
}

void f8_e4m3_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    const __m256 scale = _mm256_set1_ps(256), over = _mm256_set1_ps(480); /* 15 - 7 of bias; what 0x7f would be */
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        __m128i eight = load_eight(bytes + i);
        __m128i magnitude = _mm_slli_epi16(_mm_and_si128(eight, _mm_set1_epi16(0x7f)), 7);
        __m128i sign = _mm_slli_epi16(_mm_and_si128(eight, _mm_set1_epi16(0x80)), 8);
        __m256 decoded = _mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(magnitude, sign)), scale);
        __m256 nan = _mm256_cmp_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), decoded), over, _CMP_EQ_OQ);
        _mm256_storeu_ps(values + i, with_nan(decoded, nan));
    }
    f8_e4m3_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
}

void f8_e5m2_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        __m256 decoded = _mm256_cvtph_ps(_mm_slli_epi16(load_eight(bytes + i), 8));
        _mm256_storeu_ps(values + i, with_nan(decoded, _mm256_cmp_ps(decoded, decoded, _CMP_UNORD_Q)));
    }
    f8_e5m2_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
}

void f8_e8m0_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    const __m256i none = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        __m256i exponent = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(bytes + i)));
        __m256i is_least = _mm256_cmpeq_epi32(exponent, none),
                is_nan = _mm256_cmpeq_epi32(exponent, _mm256_set1_epi32(0xff));
        __m256i bits = _mm256_slli_epi32(exponent, 23);
        bits =
            _mm256_or_si256(bits, _mm256_and_si256(_mm256_or_si256(is_least, is_nan), _mm256_set1_epi32(0x00400000)));
        _mm256_storeu_si256((__m256i *)(void *)(values + i), bits);
    }
    f8_e8m0_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
}
