#include "quant/kernels/q4_q5_avx2.h"

static inline void decode_block(const struct q45_format *format, const uint8_t *block, float *values)
{
    __m256i levels = load_nibbles(block + format->qs);
    if (format->qh != 0)
        levels = _mm256_or_si256(levels, load_fifth_bits(block + format->qh));
    if (format->has_minimum)
        store_scaled_from(values, levels, load_scale(block), load_scale(block + Q45_M));
    else
        store_scaled(values, _mm256_sub_epi8(levels, _mm256_set1_epi8((char)(format->n_levels / 2))),
                     load_scale(block));
}

/* Encodes the formats without a minimum. */
static inline void encode_signed(const struct q45_format *format, const float *values, uint8_t *block, size_t n_blocks)
{
    float largest[BATCH] = {0}, middle = (float)(format->n_levels / 2);
    struct scales d;
    for (size_t i = 0; i < n_blocks; i++)
        largest[i] = signed_largest(values + i * BLOCK32_ELEMENTS);
    scales_of(largest, -middle, &d);
    for (size_t i = 0; i < n_blocks; i++, block += format->block_bytes) {
        struct values32 loaded = load_values(values + i * BLOCK32_ELEMENTS);
        memcpy(block, &d.half[i], sizeof d.half[i]);
        q45_store_levels(format, scaled_levels(&loaded, d.inverse[i], middle + 0.5f, (char)(format->n_levels - 1)),
                         block);
    }
}

static inline void encode_above(const struct q45_format *format, const float *values, uint8_t *block, size_t n_blocks)
{
    float minimum[BATCH], span[BATCH];
    uint16_t m[BATCH];
    struct scales d;
    ranges_of(values, n_blocks, minimum, span);
    scales_of(span, (float)(format->n_levels - 1), &d);
    halves_of(minimum, m);
    for (size_t i = 0; i < n_blocks; i++, block += format->block_bytes) {
        struct values32 above = values_above(values + i * BLOCK32_ELEMENTS, minimum[i]);
        memcpy(block, &d.half[i], sizeof d.half[i]);
        memcpy(block + Q45_M, &m[i], sizeof m[i]);
        q45_store_levels(format, scaled_levels(&above, d.inverse[i], 0.5f, (char)(format->n_levels - 1)), block);
    }
}

static inline void encode_batch(const struct q45_format *format, const float *values, uint8_t *block, size_t n_blocks)
{
    if (format->has_minimum)
        encode_above(format, values, block, n_blocks);
    else
        encode_signed(format, values, block, n_blocks);
}

static inline void encode(const struct q45_format *format, const float *values, uint8_t *block, size_t n_blocks)
{
    for (; n_blocks >= BATCH; n_blocks -= BATCH, values += BATCH * BLOCK32_ELEMENTS) {
        encode_batch(format, values, block, BATCH);
        block += BATCH * format->block_bytes;
    }
    encode_batch(format, values, block, n_blocks);
}

static inline void decode(const struct q45_format *format, const uint8_t *block, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, block += format->block_bytes, values += BLOCK32_ELEMENTS)
        decode_block(format, block, values);
}

/* Flattened, so that the format is a constant in the loops. */
#define DEFINE_KERNELS(name)                                                                                           \
    void name##_decode_avx2(const void *blocks, float *values, size_t n_blocks)                                        \
    {                                                                                                                  \
        decode(&name##_format, blocks, values, n_blocks);                                                              \
    }                                                                                                                  \
    __attribute__((flatten)) void name##_encode_avx2(const float *values, void *blocks, size_t n_blocks)               \
    {                                                                                                                  \
        encode(&name##_format, values, blocks, n_blocks);                                                              \
    }

DEFINE_KERNELS(q4_0)
DEFINE_KERNELS(q4_1)
DEFINE_KERNELS(q5_0)
DEFINE_KERNELS(q5_1)
