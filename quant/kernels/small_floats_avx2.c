/* F16 with F16C, except for NaN, which its instructions make quiet. */
#include "quant/blocks/dtype.h"

#include <immintrin.h>
#include <string.h>

decode_function f16_decode_avx2;
encode_function f16_encode_avx2;

void f16_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const struct kernels *portable = &f16_dtype.kernels[CPU_PORTABLE];
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        __m256 eight = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(bytes + 2 * i)));
        _mm256_storeu_ps(values + i, eight);
        if (_mm256_movemask_ps(_mm256_cmp_ps(eight, eight, _CMP_UNORD_Q)) != 0)
            portable->decode(bytes + 2 * i, values + i, 8);
    }
    portable->decode(bytes + 2 * i, values + i, n_blocks - i);
}

void f16_encode_avx2(const float *values, void *blocks, size_t n_blocks)
{
    const struct kernels *portable = &f16_dtype.kernels[CPU_PORTABLE];
    uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        __m256 eight = _mm256_loadu_ps(values + i);
        _mm_storeu_si128((__m128i *)(void *)(bytes + 2 * i), _mm256_cvtps_ph(eight, _MM_FROUND_TO_NEAREST_INT));
        if (_mm256_movemask_ps(_mm256_cmp_ps(eight, eight, _CMP_UNORD_Q)) != 0)
            portable->encode(values + i, bytes + 2 * i, 8);
    }
    portable->encode(values + i, bytes + 2 * i, n_blocks - i);
}

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

/* 8-bit types by way of F16, which holds all values of E4M3, E5M2 and E4M3FNUZ: they differ in the bias of the
 * exponent, and in the bits that are not finite. NaNs equal those of the portable kernels. */

decode_function f8_e4m3_decode_avx2, f8_e5m2_decode_avx2, f8_e4m3fnuz_decode_avx2, f8_e5m2fnuz_decode_avx2;
decode_function f8_e8m0_decode_avx2;

extern const struct dtype f8_e5m2_dtype, f8_e4m3fnuz_dtype, f8_e5m2fnuz_dtype, f8_e8m0_dtype;

static __m128i load_eight(const uint8_t *bytes)
{
    return _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
}

/* Returns `values`, with NaNs of the same signs where `nan` is set. */
static __m256 with_nan(__m256 values, __m256 nan)
{
    __m256 sign = _mm256_and_ps(values, _mm256_set1_ps(-0.0f));
    __m256 quiet = _mm256_or_ps(sign, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)));
    return _mm256_blendv_ps(values, quiet, nan);
}

/* Returns numbers with four bits of exponent and three of mantissa as F16. */
static __m256 e4m3_as_f16(const uint8_t *bytes)
{
    __m128i eight = load_eight(bytes);
    __m128i magnitude = _mm_slli_epi16(_mm_and_si128(eight, _mm_set1_epi16(0x7f)), 7);
    __m128i sign = _mm_slli_epi16(_mm_and_si128(eight, _mm_set1_epi16(0x80)), 8);
    return _mm256_cvtph_ps(_mm_or_si128(magnitude, sign));
}

void f8_e4m3_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    const __m256 scale = _mm256_set1_ps(256), over = _mm256_set1_ps(480); /* 15 - 7 of bias; what 0x7f would be */
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        __m256 decoded = _mm256_mul_ps(e4m3_as_f16(bytes + i), scale);
        __m256 nan = _mm256_cmp_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), decoded), over, _CMP_EQ_OQ);
        _mm256_storeu_ps(values + i, with_nan(decoded, nan));
    }
    f8_e4m3_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
}

void f8_e4m3fnuz_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    const __m256i nan_bits = _mm256_set1_epi32((int)0x80000000); /* the negative zero of F16 */
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        __m256 decoded = _mm256_mul_ps(e4m3_as_f16(bytes + i), _mm256_set1_ps(128)); /* 15 - 8 of bias */
        __m256i nan = _mm256_cmpeq_epi32(_mm256_castps_si256(decoded), nan_bits);
        _mm256_storeu_ps(values + i, with_nan(decoded, _mm256_castsi256_ps(nan)));
    }
    f8_e4m3fnuz_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
}

/* Not by way of F16, which has no exponent for the largest values. */
void f8_e5m2fnuz_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    const __m256i bias = _mm256_set1_epi32((127 - 16) << 23), nan_byte = _mm256_set1_epi32(0x80);
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        __m256i eight = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(bytes + i)));
        __m256i magnitude = _mm256_and_si256(eight, _mm256_set1_epi32(0x7f));
        __m256 normal = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_slli_epi32(magnitude, 21), bias));
        __m256 subnormal = _mm256_mul_ps(_mm256_cvtepi32_ps(magnitude), _mm256_set1_ps(0x1p-17f));
        __m256i is_normal = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(3));
        __m256 decoded = _mm256_blendv_ps(subnormal, normal, _mm256_castsi256_ps(is_normal));
        __m256i sign = _mm256_slli_epi32(_mm256_and_si256(eight, nan_byte), 24);
        decoded = _mm256_or_ps(decoded, _mm256_castsi256_ps(sign));
        _mm256_storeu_ps(values + i, with_nan(decoded, _mm256_castsi256_ps(_mm256_cmpeq_epi32(eight, nan_byte))));
    }
    f8_e5m2fnuz_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
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
