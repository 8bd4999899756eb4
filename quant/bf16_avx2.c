#include "quant/dtype.h"

#include <immintrin.h>

decode_function bf16_decode_avx2;
encode_function bf16_encode_avx2;

void bf16_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 8 <= n_blocks; i += 8) {
        __m256i eight = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(bytes + 2 * i)));
        _mm256_storeu_si256((__m256i *)(void *)(values + i), _mm256_slli_epi32(eight, 16));
    }
    bf16_dtype.kernels[CPU_PORTABLE].decode(bytes + 2 * i, values + i, n_blocks - i);
}

/* Eight numbers, the BF16 in the low half of each. */
static __m256i round_eight(const float *values)
{
    __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)values);
    __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    __m256i nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}

void bf16_encode_avx2(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *bytes = blocks;
    size_t i = 0;
    for (; i + 16 <= n_blocks; i += 16) {
        __m256i packed = _mm256_packus_epi32(round_eight(values + i), round_eight(values + i + 8));
        _mm256_storeu_si256((__m256i *)(void *)(bytes + 2 * i),
                            _mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0)));
    }
    bf16_dtype.kernels[CPU_PORTABLE].encode(values + i, bytes + 2 * i, n_blocks - i);
}
