#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/kernels/avx2.h"

enum { QS = 2, BLOCK_BYTES = 18 };

static inline __m256i levels_of(const float *values, float d)
{
    struct values32 loaded = load_values(values);
    __m256i integers[4], least = _mm256_set1_epi32(-8), most = _mm256_set1_epi32(7);
    for (int i = 0; i < 4; i++) {
        __m256i level = round_away(_mm256_div_ps(loaded.part[i], _mm256_set1_ps(d)));
        level = _mm256_max_epi32(_mm256_min_epi32(level, most), least);
        integers[i] = _mm256_sub_epi32(level, least);
    }
    return d != 0 ? to_bytes(integers) : _mm256_set1_epi8(8);
}

static inline void encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    float largest[BATCH] = {0};
    struct scales d;
    largest_of_each(values, n_blocks, largest);
    scales_of(largest, 7, &d);
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES) {
        memcpy(block, &d.half[i], sizeof d.half[i]);
        store_nibbles(block + QS, levels_of(values + i * BLOCK32_ELEMENTS, d.scale[i]));
    }
}

DEFINE_AVX2_ENCODER(q4_0_absmax7, BLOCK32_ELEMENTS, BLOCK_BYTES)
