#include "quant/blocks/dtype.h"
#include "quant/blocks/fp4.h"
#include "quant/kernels/avx2.h"

enum { ELEMENTS = 32, QS = 1, BLOCK_BYTES = 17 };

static void decode_block(const uint8_t *block, float *values)
{
    __m256i doubled_e2m1 =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
    store_scaled(values, _mm256_shuffle_epi8(doubled_e2m1, load_nibbles(block + QS)), mxfp4_half_scale(block[0]));
}

static inline void encode_codes(const float *values, float scale, uint8_t *qs)
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

static inline void encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES) {
        struct values32 loaded = load_values(values + i * ELEMENTS);
        block[0] = mxfp4_exponent_of(largest_magnitude(&loaded));
    }
    block -= n_blocks * BLOCK_BYTES;
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES)
        encode_codes(values + i * ELEMENTS, mxfp4_half_scale(block[0]), block + QS);
}

DEFINE_AVX2_KERNELS(mxfp4, ELEMENTS, BLOCK_BYTES)
