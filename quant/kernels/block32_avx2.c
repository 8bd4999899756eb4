/* Blocks of 32 values: Q4_0 to Q5_1 without importance, and Q8_0. */
#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/kernels/avx2.h"

static inline void q45_decode_block(const struct q45_format *format, const uint8_t *block, float *values)
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
static inline void q45_encode_signed(const struct q45_format *format, const float *values, uint8_t *block,
                                     size_t n_blocks)
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

static inline void q45_encode_above(const struct q45_format *format, const float *values, uint8_t *block,
                                    size_t n_blocks)
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

static inline void q45_encode_batch(const struct q45_format *format, const float *values, uint8_t *block,
                                    size_t n_blocks)
{
    if (format->has_minimum)
        q45_encode_above(format, values, block, n_blocks);
    else
        q45_encode_signed(format, values, block, n_blocks);
}

static inline void q45_encode(const struct q45_format *format, const float *values, uint8_t *block, size_t n_blocks)
{
    for (; n_blocks >= BATCH; n_blocks -= BATCH, values += BATCH * BLOCK32_ELEMENTS) {
        q45_encode_batch(format, values, block, BATCH);
        block += BATCH * format->block_bytes;
    }
    q45_encode_batch(format, values, block, n_blocks);
}

static inline void q45_decode(const struct q45_format *format, const uint8_t *block, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, block += format->block_bytes, values += BLOCK32_ELEMENTS)
        q45_decode_block(format, block, values);
}

/* Flattened, so that the format is a constant in the loops. */
#define DEFINE_KERNELS(name)                                                                                           \
    void name##_decode_avx2(const void *blocks, float *values, size_t n_blocks)                                        \
    {                                                                                                                  \
        q45_decode(&name##_format, blocks, values, n_blocks);                                                          \
    }                                                                                                                  \
    __attribute__((flatten)) void name##_encode_avx2(const float *values, void *blocks, size_t n_blocks)               \
    {                                                                                                                  \
        q45_encode(&name##_format, values, blocks, n_blocks);                                                          \
    }

DEFINE_KERNELS(q4_0)
DEFINE_KERNELS(q4_1)
DEFINE_KERNELS(q5_0)
DEFINE_KERNELS(q5_1)

enum { ABSMAX7_QS = 2, ABSMAX7_BYTES = 18 };

static inline __m256i absmax7_levels(const float *values, float d)
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

static inline void q4_0_absmax7_encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    float largest[BATCH] = {0};
    struct scales d;
    largest_of_each(values, n_blocks, largest);
    scales_of(largest, 7, &d);
    for (size_t i = 0; i < n_blocks; i++, block += ABSMAX7_BYTES) {
        memcpy(block, &d.half[i], sizeof d.half[i]);
        store_nibbles(block + ABSMAX7_QS, absmax7_levels(values + i * BLOCK32_ELEMENTS, d.scale[i]));
    }
}

DEFINE_AVX2_ENCODER(q4_0_absmax7, BLOCK32_ELEMENTS, ABSMAX7_BYTES)

enum { Q8_0_QS = 2, Q8_0_BYTES = 34 };

static void q8_0_decode_block(const uint8_t *block, float *values)
{
    store_scaled(values, _mm256_loadu_si256((const __m256i *)(const void *)(block + Q8_0_QS)), load_scale(block));
}

static inline void q8_0_encode_batch(const float *values, uint8_t *block, size_t n_blocks)
{
    float largest[BATCH] = {0};
    struct scales d;
    largest_of_each(values, n_blocks, largest);
    scales_of(largest, 127, &d);
    for (size_t i = 0; i < n_blocks; i++, block += Q8_0_BYTES) {
        struct values32 loaded = load_values(values + i * BLOCK32_ELEMENTS);
        __m256i levels[4];
        for (int j = 0; j < 4; j++) { /* the low byte of each, like a cast: packing would saturate */
            __m256i rounded = round_away(_mm256_mul_ps(loaded.part[j], _mm256_set1_ps(d.inverse[i])));
            levels[j] = _mm256_and_si256(rounded, _mm256_set1_epi32(0xff));
        }
        memcpy(block, &d.half[i], sizeof d.half[i]);
        _mm256_storeu_si256((__m256i *)(void *)(block + Q8_0_QS), to_bytes(levels));
    }
}

DEFINE_AVX2_KERNELS(q8_0, BLOCK32_ELEMENTS, Q8_0_BYTES)
