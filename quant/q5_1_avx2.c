#include "quant/avx2.h"
#include "quant/block32.h"
#include "quant/dtype.h"

enum { M = 2, QH = 4, QS = 8, BLOCK_BYTES = 24 };

static void decode_block(const uint8_t *block, float *values)
{
    __m256i levels = _mm256_or_si256(load_nibbles(block + QS), load_fifth_bits(block + QH));
    store_scaled_from(values, levels, load_scale(block), load_scale(block + M));
}

static inline void encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    float minimum[BATCH], span[BATCH];
    uint16_t m[BATCH];
    struct scales d;
    ranges_of(values, n_blocks, minimum, span);
    scales_of(span, 31, &d);
    halves_of(minimum, m);
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES) {
        struct values32 above = values_above(values + i * BLOCK32_ELEMENTS, minimum[i]);
        __m256i levels = scaled_levels(&above, d.inverse[i], 0.5f, 31);
        memcpy(block, &d.half[i], sizeof d.half[i]);
        memcpy(block + M, &m[i], sizeof m[i]);
        store_fifth_bits(block + QH, levels);
        store_nibbles(block + QS, levels);
    }
}

DEFINE_AVX2_KERNELS(q5_1, BLOCK32_ELEMENTS, BLOCK_BYTES)
