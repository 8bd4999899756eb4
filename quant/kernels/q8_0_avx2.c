#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/kernels/avx2.h"

enum { QS = 2, BLOCK_BYTES = 34 };

static void decode_block(const uint8_t *block, float *values)
{
    store_scaled(values, _mm256_loadu_si256((const __m256i *)(const void *)(block + QS)), load_scale(block));
}

static inline void encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    float largest[BATCH] = {0};
    struct scales d;
    largest_of_each(values, n_blocks, largest);
    scales_of(largest, 127, &d);
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES) {
        struct values32 loaded = load_values(values + i * BLOCK32_ELEMENTS);
        __m256i levels[4];
        for (int j = 0; j < 4; j++) { /* the low byte of each, like a cast: packing would saturate */
            __m256i rounded = round_away(_mm256_mul_ps(loaded.part[j], _mm256_set1_ps(d.inverse[i])));
            levels[j] = _mm256_and_si256(rounded, _mm256_set1_epi32(0xff));
        }
        memcpy(block, &d.half[i], sizeof d.half[i]);
        _mm256_storeu_si256((__m256i *)(void *)(block + QS), to_bytes(levels));
    }
}

DEFINE_AVX2_KERNELS(q8_0, BLOCK32_ELEMENTS, BLOCK_BYTES)
