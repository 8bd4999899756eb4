/* F16 with F16C, except for NaN, which its instructions make quiet. */
#include "quant/blocks/dtype.h"

#include <immintrin.h>

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
