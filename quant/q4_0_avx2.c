#include "quant/avx2.h"
#include "quant/block32.h"
#include "quant/dtype.h"

enum { QS = 2, BLOCK_BYTES = 18 };

static void decode_block(const uint8_t *block, float *values)
{
    __m256i levels = _mm256_sub_epi8(load_nibbles(block + QS), _mm256_set1_epi8(8));
    store_scaled(values, levels, load_scale(block));
}

static inline void encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    float largest[BATCH] = {0};
    struct scales d;
    for (size_t i = 0; i < n_blocks; i++)
        largest[i] = signed_largest(values + i * BLOCK32_ELEMENTS);
    scales_of(largest, -8, &d);
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES) {
        struct values32 loaded = load_values(values + i * BLOCK32_ELEMENTS);
        __m256i levels = scaled_levels(&loaded, d.inverse[i], 8.5f, 15);
        memcpy(block, &d.half[i], sizeof d.half[i]);
        store_nibbles(block + QS, levels);
    }
}

DEFINE_AVX2_KERNELS(q4_0, BLOCK32_ELEMENTS, BLOCK_BYTES)
