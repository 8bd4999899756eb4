/* MXFP4 and NVFP4. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/fp4.h"
#include "quant/kernels/avx2.h"

enum { MXFP4_ELEMENTS = 32, MXFP4_QS = 1, MXFP4_BYTES = 17 };

static void mxfp4_decode_block(const uint8_t *block, float *values)
{
    __m256i doubled_e2m1 =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
    store_scaled(values, _mm256_shuffle_epi8(doubled_e2m1, load_nibbles(block + MXFP4_QS)), mxfp4_half_scale(block[0]));
}

static inline void mxfp4_encode_codes(const float *values, float scale, uint8_t *qs)
{
    static const float midpoints[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10};
    struct values32 loaded = load_values(values);
    __m256i codes[4];
    for (int i = 0; i < 4; i++) {
        __m256 magnitude = magnitudes(loaded.part[i]);
        __m256i code = _mm256_setzero_si256();
        for (int j = 0; j < 7; j++) {
            __m256 above = _mm256_cmp_ps(magnitude, _mm256_set1_ps(midpoints[j] * scale), _CMP_GT_OQ);
            code = _mm256_sub_epi32(code, _mm256_castps_si256(above));
        }
        __m256i sign = _mm256_srli_epi32(_mm256_castps_si256(loaded.part[i]), 31);
        __m256i negative = _mm256_andnot_si256(_mm256_cmpeq_epi32(code, _mm256_setzero_si256()), sign);
        codes[i] = _mm256_or_si256(code, _mm256_slli_epi32(negative, 3));
    }
    store_nibbles(qs, to_bytes(codes));
}

static inline void mxfp4_encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, block += MXFP4_BYTES) {
        struct values32 loaded = load_values(values + i * MXFP4_ELEMENTS);
        block[0] = mxfp4_exponent_of(largest_magnitude(&loaded));
    }
    block -= n_blocks * MXFP4_BYTES;
    for (size_t i = 0; i < n_blocks; i++, block += MXFP4_BYTES)
        mxfp4_encode_codes(values + i * MXFP4_ELEMENTS, mxfp4_half_scale(block[0]), block + MXFP4_QS);
}

DEFINE_AVX2_KERNELS(mxfp4, MXFP4_ELEMENTS, MXFP4_BYTES)

enum { NVFP4_ELEMENTS = 64, NVFP4_SUB_ELEMENTS = 16, NVFP4_QS = 4, NVFP4_BYTES = 36 };

decode_function nvfp4_decode_avx2;

void nvfp4_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    const __m128i doubled_e2m1 = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    for (size_t i = 0; i < n_blocks; i++, block += NVFP4_BYTES)
        for (int j = 0; j < NVFP4_ELEMENTS / NVFP4_SUB_ELEMENTS; j++, values += NVFP4_SUB_ELEMENTS) {
            __m256 scale = _mm256_set1_ps(nvfp4_half_scale(block[j]));
            __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(block + NVFP4_QS + 8 * j));
            __m128i codes = _mm_unpacklo_epi64(bytes, _mm_srli_epi16(bytes, 4));
            codes = _mm_shuffle_epi8(doubled_e2m1, _mm_and_si128(codes, _mm_set1_epi8(15)));
            __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
            __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(codes, 8)));
            _mm256_storeu_ps(values, _mm256_mul_ps(low, scale));
            _mm256_storeu_ps(values + 8, _mm256_mul_ps(high, scale));
        }
}

/* Returns the first code of the numbers nearest to each value, as the portable kernel finds it: a number of the other
 * sign is never nearer than zero, so magnitudes are compared. */
static inline __m256i nvfp4_nearest_codes(__m256 value, float scale)
{
    static const float doubled[] = {1, 2, 3, 4, 6, 8, 12};
    __m256 magnitude = magnitudes(value), least = magnitude;
    __m256i code = _mm256_setzero_si256();
    for (int i = 0; i < 7; i++) {
        __m256 distance = magnitudes(_mm256_sub_ps(_mm256_set1_ps(doubled[i] * scale), magnitude));
        __m256i nearer = _mm256_castps_si256(_mm256_cmp_ps(distance, least, _CMP_LT_OQ));
        least = _mm256_min_ps(distance, least);
        code = _mm256_blendv_epi8(code, _mm256_set1_epi32(i + 1), nearer);
    }
    __m256i sign = _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(value), 28), _mm256_set1_epi32(8));
    return _mm256_or_si256(code, _mm256_and_si256(sign, _mm256_cmpgt_epi32(code, _mm256_setzero_si256())));
}

static inline void nvfp4_encode_sub_block(const float *values, uint8_t *scale, uint8_t *qs)
{
    __m256 low = _mm256_loadu_ps(values), high = _mm256_loadu_ps(values + 8);
    __m256 largest = _mm256_max_ps(magnitudes(low), _mm256_setzero_ps());
    *scale = nvfp4_scale_of(largest_of(_mm256_max_ps(magnitudes(high), largest)) / 6);
    float half = nvfp4_half_scale(*scale);
    __m256i both =
        _mm256_or_si256(nvfp4_nearest_codes(low, half), _mm256_slli_epi32(nvfp4_nearest_codes(high, half), 4));
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    _mm_storel_epi64((__m128i *)(void *)qs, _mm_packus_epi16(words, words));
}

encode_function nvfp4_encode_avx2;

void nvfp4_encode_avx2(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += NVFP4_BYTES)
        for (int j = 0; j < NVFP4_ELEMENTS / NVFP4_SUB_ELEMENTS; j++, values += NVFP4_SUB_ELEMENTS)
            nvfp4_encode_sub_block(values, block + j, block + NVFP4_QS + 8 * j);
}
