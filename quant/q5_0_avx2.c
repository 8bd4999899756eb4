#include "quant/avx2.h"
#include "quant/block32.h"
#include "quant/dtype.h"

enum { QH = 2, QS = 6, BLOCK_BYTES = 22 };

static void decode_block(const uint8_t *block, float *values)
{
    __m256i levels = _mm256_or_si256(load_nibbles(block + QS), load_fifth_bits(block + QH));
    store_scaled(values, _mm256_sub_epi8(levels, _mm256_set1_epi8(16)), load_scale(block));
}

static inline void encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    float largest[BATCH] = {0};
    struct scales d;
    for (size_t i = 0; i < n_blocks; i++)
        largest[i] = signed_largest(values + i * BLOCK32_ELEMENTS);
    scales_of(largest, -16, &d);
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES) {
        struct values32 loaded = load_values(values + i * BLOCK32_ELEMENTS);
        __m256i levels = scaled_levels(&loaded, d.inverse[i], 16.5f, 31);
        memcpy(block, &d.half[i], sizeof d.half[i]);
        store_fifth_bits(block + QH, levels);
        store_nibbles(block + QS, levels);
    }
}

DEFINE_AVX2_KERNELS(q5_0, BLOCK32_ELEMENTS, BLOCK_BYTES)
