/* The codes of a K format from its scales (codes.h), in loops that the compiler turns into vectors at each level. */
#pragma once

#include "quant/blocks/codes.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/k_format.h"

static inline void k_codes_block(const struct k_format *format, const float *restrict values, uint8_t *block)
{
    uint8_t levels[K_ELEMENTS];
    float scales[K_MOST_SUB_BLOCKS], minimums[K_MOST_SUB_BLOCKS], low = (float)format->low, high = (float)format->high;
    const int n = format->sub_elements;
    format->load_scales(block, scales, minimums);
    for (int j = 0; j < K_ELEMENTS / n; j++) {
        const float scale = scales[j], minimum = minimums[j];
        const int mask = scale != 0 ? 0xff : 0; /* codes that have no effect are 0 */
        for (int i = j * n; i < (j + 1) * n; i++)
            levels[i] = (uint8_t)((int)(k_level((values[i] + minimum) / scale, low, high) - low) & mask);
    }
    format->pack(levels, block);
}

static inline void k_codes(const struct k_format *format, const float *values, uint8_t *block, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, values += K_ELEMENTS, block += format->block_bytes)
        k_codes_block(format, values, block);
}

/* Defines NAME_scale_form from NAME_format, the place of the F16 unit of its scales and its other fields. A code is
 * computed from the stored scales by three operations in F32. */
#define DEFINE_K_SCALES(name, unit_at, ...)                                                                            \
    static float name##_load_scales(const uint8_t *block, float scales[SCALE_FORM_MOST])                               \
    {                                                                                                                  \
        float minimums[K_MOST_SUB_BLOCKS];                                                                             \
        name##_format.load_scales(block, scales, minimums);                                                            \
        return f16_load(block + (unit_at));                                                                            \
    }                                                                                                                  \
    static const struct scale_form name##_scale_form = {                                                               \
        .has_integers = true,                                                                                          \
        .rounding = 0x1p-15,                                                                                           \
        .load = name##_load_scales,                                                                                    \
        __VA_ARGS__,                                                                                                   \
    };

/* Defines NAME_codes_LEVEL from NAME_format. */
#define DEFINE_K_CODES(name)                                                                                           \
    static inline void name##_codes(const float *values, void *blocks, size_t n_blocks)                                \
    {                                                                                                                  \
        k_codes(&name##_format, values, blocks, n_blocks);                                                             \
    }                                                                                                                  \
    DEFINE_LEVELS(DEFINE_CODES_AT, name##_codes)
