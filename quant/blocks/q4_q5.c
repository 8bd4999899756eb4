/* Without a minimum, d is the value of largest magnitude over -n_levels / 2, so that it maps to level 0 exactly. */
#include "quant/blocks/q4_q5.h"

#include "quant/blocks/block32.h"
#include "quant/blocks/codes.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/k_search.h"
#include "quant/blocks/weights.h"

static inline void q45_decode_block(const struct q45_format *format, const uint8_t *block, float *values)
{
    float d = f16_load(block), m = format->has_minimum ? f16_load(block + Q45_M) : 0;
    for (int i = 0; i < BLOCK32_ELEMENTS; i++) {
        int level = block32_nibble(block + format->qs, i);
        if (format->qh != 0)
            level |= block32_fifth_bit(block + format->qh, i);
        values[i] = format->has_minimum ? (float)level * d + m : (float)(level - format->n_levels / 2) * d;
    }
}

static inline void q45_encode_block(const struct q45_format *format, const float *values, uint8_t *block)
{
    uint8_t levels[BLOCK32_ELEMENTS];
    float d, offset = 0.5f, minimum = 0, maximum;
    if (format->has_minimum) {
        block32_range(values, &minimum, &maximum);
        d = (maximum - minimum) / (float)(format->n_levels - 1);
    } else {
        d = largest_by_magnitude(values, BLOCK32_ELEMENTS) / (float)(-format->n_levels / 2);
        offset += (float)(format->n_levels / 2);
    }
    float inverse = block32_inverse(d);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        levels[i] = block32_level((values[i] - minimum) * inverse + offset, format->n_levels - 1);
    q45_pack(format, d, minimum, levels, block);
}

static inline void q45_encode_weighted_block(const struct q45_format *format, const float *values,
                                             const float *importance, float mean_square, uint8_t *block)
{
    const struct k_range_search range = K_WEIGHTED_RANGE(format->n_levels - 1);
    uint8_t levels[BLOCK32_ELEMENTS];
    float d, weights[BLOCK32_ELEMENTS], below_zero = 0;
    importance_weights(values, importance, mean_square, BLOCK32_ELEMENTS, weights);
    if (format->has_minimum)
        d = k_search_range(&range, BLOCK32_ELEMENTS, values, weights, levels, &below_zero);
    else
        d = k_search_symmetric(BLOCK32_ELEMENTS, format->n_levels / 2, values, weights, levels);
    q45_pack(format, d, -below_zero, levels, block);
}

static inline void q45_decode(const struct q45_format *format, const uint8_t *block, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, block += format->block_bytes, values += BLOCK32_ELEMENTS)
        q45_decode_block(format, block, values);
}

static inline void q45_encode(const struct q45_format *format, const float *values, uint8_t *block, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, block += format->block_bytes, values += BLOCK32_ELEMENTS)
        q45_encode_block(format, values, block);
}

static void q45_encode_weighted(const struct q45_format *format, const float *values, const float *importance,
                                const float *mean_squares, uint8_t *block, size_t n_blocks)
{
    for (size_t i = 0, at = 0; i < n_blocks; i++, at += BLOCK32_ELEMENTS, block += format->block_bytes)
        q45_encode_weighted_block(format, values + at, importance + at, mean_squares[i], block);
}

static inline void q45_nearest_codes(const struct q45_format *format, const float *restrict values, uint8_t *block)
{
    uint8_t levels[BLOCK32_ELEMENTS];
    float d = f16_load(block), m = format->has_minimum ? f16_load(block + Q45_M) : 0;
    float offset = format->has_minimum ? 0.5f : 0.5f + (float)(format->n_levels / 2);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        levels[i] = block32_level((d != 0 ? (values[i] - m) / d : 0) + offset, format->n_levels - 1);
    q45_pack_levels(format, levels, block);
}

static float q45_load_scale(const uint8_t *block, float scales[SCALE_FORM_MOST])
{
    return scales[0] = f16_load(block);
}

#define DEFINE_DTYPE(prefix, upper, id, scales, steps)                                                                 \
    static void prefix##_decode(const void *blocks, float *values, size_t n_blocks)                                    \
    {                                                                                                                  \
        q45_decode(&prefix##_format, blocks, values, n_blocks);                                                        \
    }                                                                                                                  \
    static void prefix##_encode(const float *values, void *blocks, size_t n_blocks)                                    \
    {                                                                                                                  \
        q45_encode(&prefix##_format, values, blocks, n_blocks);                                                        \
    }                                                                                                                  \
    static void prefix##_encode_weighted(const float *values, const float *importance, const float *mean_squares,      \
                                         void *blocks, size_t n_blocks)                                                \
    {                                                                                                                  \
        q45_encode_weighted(&prefix##_format, values, importance, mean_squares, blocks, n_blocks);                     \
    }                                                                                                                  \
    static inline void prefix##_nearest(const float *values, uint8_t *block)                                           \
    {                                                                                                                  \
        q45_nearest_codes(&prefix##_format, values, block);                                                            \
    }                                                                                                                  \
    DEFINE_BLOCK32_CODES(prefix, prefix##_nearest, upper##_BYTES, 2 * (scales))                                        \
    static const struct scale_form prefix##_scale_form = {                                                             \
        .span = (scales) == 2 ? SPAN_RANGE : SPAN_MAGNITUDE,                                                           \
        .n_sub_blocks = 1,                                                                                             \
        .n_steps = steps,                                                                                              \
        .least = 0.55,                                                                                                 \
        .most = 1.65,                                                                                                  \
        .reach = (steps) * (scales),                                                                                   \
        .loose = 0.5,                                                                                                  \
        .load = q45_load_scale,                                                                                        \
    };                                                                                                                 \
    const struct dtype prefix##_dtype = {                                                                              \
        .name = #upper,                                                                                                \
        .view_name = #prefix,                                                                                          \
        .kind = DTYPE_BLOCK,                                                                                           \
        .block_elements = BLOCK32_ELEMENTS,                                                                            \
        .block_bytes = upper##_BYTES,                                                                                  \
        .ggml_type = id,                                                                                               \
        .n_scales = scales,                                                                                            \
        .scale_offset = {0, Q45_M},                                                                                    \
        .weighs_rows = true,                                                                                           \
        .encode_cost = 250,                                                                                            \
        .kernels[CPU_PORTABLE] = {prefix##_decode, prefix##_encode, prefix##_encode_weighted},                         \
        .kernels[CPU_NEON] = {ON_ARM(prefix##_decode_neon), ON_ARM(prefix##_encode_neon),                              \
                              ON_ARM(prefix##_encode_weighted_neon)},                                                  \
        .kernels[CPU_AVX2] = {ON_X86(prefix##_decode_avx2), ON_X86(prefix##_encode_avx2),                              \
                              ON_X86(prefix##_encode_weighted_avx2)},                                                  \
        .kernels[CPU_AVX512] = {NULL, NULL, ON_X86(prefix##_encode_weighted_avx512)},                                  \
        .codes = BLOCK32_CODES(prefix),                                                                                \
        .scale_parts = {{0, 2 * (scales)}},                                                                            \
        .scale_form = &prefix##_scale_form,                                                                            \
    };

DEFINE_DTYPE(q4_0, Q4_0, 2, 1, 8)
DEFINE_DTYPE(q4_1, Q4_1, 3, 2, 15)
DEFINE_DTYPE(q5_0, Q5_0, 6, 1, 16)
DEFINE_DTYPE(q5_1, Q5_1, 7, 2, 31)

/* Q4_0 by another rule, as some engines quantize at load time: d = amax / 7; the level is x / d, or 0 if d is 0,
 * rounded half away from zero and clamped to -8 .. 7. Blocks have Q4_0's form. */

enum { ABSMAX7_QS = 2 };

static void absmax7_encode_block(const float *values, uint8_t *block)
{
    uint8_t levels[BLOCK32_ELEMENTS];
    float d = fabsf(largest_by_magnitude(values, BLOCK32_ELEMENTS)) / 7;
    for (int i = 0; i < BLOCK32_ELEMENTS; i++) {
        int level = d != 0 ? block32_round(values[i] / d) : 0;
        int capped = level < 7 ? level : 7;
        levels[i] = (uint8_t)(8 + (capped < -8 ? -8 : capped));
    }
    f16_store(block, d);
    block32_pack_nibbles(levels, block + ABSMAX7_QS);
}

static void absmax7_encode(const float *values, void *blocks, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        absmax7_encode_block(values + i * BLOCK32_ELEMENTS, (uint8_t *)blocks + i * Q4_0_BYTES);
}

encode_function q4_0_absmax7_encode_neon, q4_0_absmax7_encode_avx2;

const struct rule q4_0_absmax7_rule = {
    .name = "absmax7",
    .encode[CPU_PORTABLE] = absmax7_encode,
    .encode[CPU_NEON] = ON_ARM(q4_0_absmax7_encode_neon),
    .encode[CPU_AVX2] = ON_X86(q4_0_absmax7_encode_avx2),
};
