/* Like the 8-bit types of small_floats_avx2.c, sixteen values at a time. */
#include "quant/blocks/dtype.h"

#include <immintrin.h>

decode_function f8_e4m3_decode_avx512, f8_e5m2_decode_avx512;

extern const struct dtype f8_e5m2_dtype;

static __m256i load_sixteen(const uint8_t *bytes)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)bytes));
}

static __m512 with_nan(__m512 values, __mmask16 nan)
{
    const __m512i sign = _mm512_set1_epi32((int)0x80000000), quiet = _mm512_set1_epi32(0x7fc00000);
    __m512i bits = _mm512_castps_si512(values);
    return _mm512_castsi512_ps(_mm512_mask_or_epi32(bits, nan, _mm512_and_si512(bits, sign), quiet));
}

void f8_e4m3_decode_avx512(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 16 <= n_blocks; i += 16) {
        __m128i loaded = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i));
        __m256i sixteen = _mm256_cvtepu8_epi16(loaded);
        __m256i magnitude = _mm256_slli_epi16(_mm256_and_si256(sixteen, _mm256_set1_epi16(0x7f)), 7);
        __m256i sign = _mm256_slli_epi16(_mm256_and_si256(sixteen, _mm256_set1_epi16(0x80)), 8);
        __mmask16 nan = _mm_cmpeq_epi8_mask(_mm_and_si128(loaded, _mm_set1_epi8(0x7f)), _mm_set1_epi8(0x7f));
        __m512 decoded = _mm512_mul_ps(_mm512_cvtph_ps(_mm256_or_si256(magnitude, sign)), _mm512_set1_ps(256));
        _mm512_storeu_ps(values + i, with_nan(decoded, nan));
    }
    f8_e4m3_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
}

void f8_e5m2_decode_avx512(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 16 <= n_blocks; i += 16) {
        __m512 decoded = _mm512_cvtph_ps(_mm256_slli_epi16(load_sixteen(bytes + i), 8));
        _mm512_storeu_ps(values + i, with_nan(decoded, _mm512_cmp_ps_mask(decoded, decoded, _CMP_UNORD_Q)));
    }
    f8_e5m2_dtype.kernels[CPU_PORTABLE].decode(bytes + i, values + i, n_blocks - i);
}
