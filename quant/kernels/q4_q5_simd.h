/* Q4_0, Q4_1, Q5_0 and Q5_1 by importance, with one block a lane: included after k_simd.h, whose searches they share.
 */
#include "quant/blocks/q4_q5.h"

/* Searches WIDTH blocks. */
static inline void q45_search(const struct q45_format *format, const float *values, const float *weights,
                              struct v_found *found)
{
    const struct k_range_search range = K_WEIGHTED_RANGE(format->n_levels - 1);
    struct v_value loaded[BLOCK32_ELEMENTS];
    load_lanes(values, BLOCK32_ELEMENTS, &loaded->x, sizeof *loaded / sizeof loaded->x);
    load_lanes(weights, BLOCK32_ELEMENTS, &loaded->weight, sizeof *loaded / sizeof loaded->weight);
    if (format->has_minimum)
        v_search_range(loaded, &range, BLOCK32_ELEMENTS, false, found);
    else
        v_search_symmetric(loaded, BLOCK32_ELEMENTS, format->n_levels / 2, found);
}

/* Encodes at most WIDTH blocks; there are values and weights of WIDTH. */
static inline void q45_encode_wide(const struct q45_format *format, const float *values, const float *weights,
                                   uint8_t *blocks, size_t n_blocks)
{
    struct v_found found;
    float inverses[WIDTH], offsets[WIDTH];
    uint16_t scales[WIDTH], minimums[WIDTH];
    const int low = format->has_minimum ? 0 : -format->n_levels / 2;
    const vf lowest = v_set((float)low), highest = v_set((float)(low + format->n_levels - 1));
    q45_search(format, values, weights, &found);
    EACH_VECTOR(v)
    {
        v_store_halves(found.scale[v], scales + v * LANES);
        v_store_halves(-found.minimum[v], minimums + v * LANES);
    }
    memcpy(inverses, found.inverse, sizeof inverses);
    memcpy(offsets, found.offset, sizeof offsets);
    for (size_t b = 0; b < n_blocks; b++, values += BLOCK32_ELEMENTS, blocks += format->block_bytes) {
        vf levels[BLOCK32_ELEMENTS / LANES];
        for (int i = 0; i < BLOCK32_ELEMENTS / LANES; i++) {
            vf level = v_set(inverses[b]) * (v_load(values + i * LANES) - v_set(offsets[b]));
            levels[i] = v_level(level, lowest, highest) - lowest;
        }
        memcpy(blocks, &scales[b], sizeof scales[b]);
        if (format->has_minimum)
            memcpy(blocks + Q45_M, &minimums[b], sizeof minimums[b]);
        v_store_levels(format, levels, blocks);
    }
}

static inline void q45_encode(const struct q45_format *format, const float *values, const float *importance,
                              const float *mean_squares, uint8_t *blocks, size_t n_blocks)
{
    for (size_t i = 0, n; i < n_blocks; i += n) {
        float padded[WIDTH * BLOCK32_ELEMENTS], weights[WIDTH * BLOCK32_ELEMENTS];
        const float *first = values + i * BLOCK32_ELEMENTS;
        n = n_blocks - i < WIDTH ? n_blocks - i : WIDTH;
        for (size_t b = 0; b < n; b++)
            importance_weights(first + b * BLOCK32_ELEMENTS, importance + (i + b) * BLOCK32_ELEMENTS,
                               mean_squares[i + b], BLOCK32_ELEMENTS, weights + b * BLOCK32_ELEMENTS);
        if (n < WIDTH) {
            memset(padded, 0, sizeof padded);
            memset(weights + n * BLOCK32_ELEMENTS, 0, (WIDTH - n) * BLOCK32_ELEMENTS * sizeof *weights);
            first = memcpy(padded, first, n * BLOCK32_ELEMENTS * sizeof *first);
        }
        q45_encode_wide(format, first, weights, blocks + i * format->block_bytes, n);
    }
}

/* Flattened, so that the format is a constant in the loops. */
#define DEFINE_Q45_ENCODER(name)                                                                                       \
    __attribute__((flatten)) void K_NAME(name##_encode_weighted)(                                                      \
        const float *values, const float *importance, const float *mean_squares, void *blocks, size_t n_blocks)        \
    {                                                                                                                  \
        q45_encode(&name##_format, values, importance, mean_squares, blocks, n_blocks);                                \
    }

DEFINE_Q45_ENCODER(q4_0)
DEFINE_Q45_ENCODER(q4_1)
DEFINE_Q45_ENCODER(q5_0)
DEFINE_Q45_ENCODER(q5_1)
