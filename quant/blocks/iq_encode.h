/* The encoder of iq_format.h over the slow search: included by iq_format.c and iq_simd.h, so that all of it is compiled
 * for the instruction set. */
#pragma once

#include "quant/blocks/f16.h"
#include "quant/blocks/iq_format.h"
#include "quant/blocks/weights.h"

#include <math.h>

/* Finds the scale of a sub-block and the points of its groups, by the magnitudes of its values. The tries are around
 * the inverse scale (2 * n_levels - 1) / begin; `scale` is the result if no try has a gain. One magnitude of a group is
 * negative if the signs had to be made even; if it outweighs the rest, the result may be negative, too. */
typedef float iq_search_function(const struct iq_format *format, const struct grid_search *search,
                                 const float *magnitudes, const float *weights, float begin, float scale,
                                 uint16_t *points);

/* Finds the magnitudes of a group, and returns its signs. If the number of negative signs must be even, the sign of the
 * least important value may be flipped, which makes its magnitude negative. */
static inline unsigned take_signs(bool even_signs, const float *values, const float *weights, float *magnitudes)
{
    unsigned signs = 0, least = 0;
    for (unsigned i = 0; i < IQ_GROUP; i++) {
        bool negative = !(values[i] >= 0);
        magnitudes[i] = negative ? -values[i] : values[i];
        signs |= (unsigned)negative << i;
    }
    if (!even_signs || !__builtin_parity(signs))
        return signs;
    for (unsigned i = 1; i < IQ_GROUP; i++)
        if (weights[i] * values[i] * values[i] < weights[least] * values[least] * values[least])
            least = i;
    magnitudes[least] = -magnitudes[least];
    return signs ^ 1u << least;
}

static inline void find_weights(const struct iq_format *format, const float *values, const float *importance,
                                float *weights)
{
    float mean_square = format->mean_factor * sum_of_squares(values, IQ_ELEMENTS) / IQ_ELEMENTS;
    if (importance != NULL)
        importance_weights(values, importance, mean_square, IQ_ELEMENTS, weights);
    for (int i = 0; importance == NULL && i < IQ_ELEMENTS; i++)
        weights[i] = (format->plain_share != 0 ? format->plain_share * mean_square : 0) + values[i] * values[i];
}

static inline float search_sub_block(iq_search_function *search, const struct iq_format *format,
                                     const struct grid_search *tables, const float *values, const float *weights,
                                     uint16_t *points, uint8_t *signs, bool *ret_searched)
{
    float magnitudes[IQ_MOST_SUB_ELEMENTS] = {0}, n_levels = (float)tables->grid->n_levels;
    int n = format->sub_elements;
    uint8_t taken[IQ_MOST_SUB_ELEMENTS / IQ_GROUP], levels[IQ_MOST_SUB_ELEMENTS];
    for (int i = 0; i < n; i += IQ_GROUP)
        taken[i / IQ_GROUP] = (uint8_t)take_signs(format->even_signs, values + i, weights + i, magnitudes + i);
    float largest = magnitudes[0];
    for (int i = 1; i < n; i++)
        largest = magnitudes[i] > largest ? magnitudes[i] : largest;
    *ret_searched = format->negligible > 0 ? !(largest < format->negligible) : largest != 0;
    if (!*ret_searched)
        return 0;
    float begin = largest, scale = largest / (2 * n_levels - 1);
    if (format->positive) {
        scale = k_search_positive(n, (int)n_levels + 1, magnitudes, weights, levels);
        begin = scale * n_levels;
        *ret_searched = begin > 0;
        if (!*ret_searched)
            return 0;
    }
    scale = search(format, tables, magnitudes, weights, begin, scale, points);
    for (int i = 0; i < n / IQ_GROUP; i++)
        signs[i] = (uint8_t)((taken[i] ^ (scale < 0 ? 0xff : 0)) & (format->even_signs ? 0x7f : 0xff));
    return fabsf(scale);
}

static inline void encode_block(iq_search_function *search, const struct iq_format *format,
                                const struct grid_search *tables, const float *values, const float *importance,
                                uint8_t *block)
{
    struct iq_found found = {0};
    float weights[IQ_ELEMENTS], scales[IQ_MOST_SUB_BLOCKS], largest = 0;
    int n = format->sub_elements, n_sub = IQ_ELEMENTS / n;
    find_weights(format, values, importance, weights);
    for (int j = 0; j < n_sub; j++) {
        scales[j] = search_sub_block(search, format, tables, values + j * n, weights + j * n,
                                     found.points + j * n / (int)tables->grid->dimension,
                                     found.signs + j * n / IQ_GROUP, &found.searched[j]);
        largest = scales[j] > largest ? scales[j] : largest;
    }
    memset(block, 0, format->block_bytes);
    if (largest == 0 && !format->keeps_points)
        return;
    float d = largest / 31, inverse = 1 / d;
    f16_store(block, d * format->fudge);
    for (int j = 0; largest != 0 && j < n_sub; j++)
        found.shares[j] = (uint8_t)clamp_int(nearest_int(0.5f * (inverse * scales[j] - 1)), 0, 15);
    format->pack(&found, block);
}

static inline void encode_blocks(iq_search_function *search, const struct iq_format *format, const float *values,
                                 const float *importance, uint8_t *blocks, size_t n_blocks)
{
    const struct grid_search *tables = n_blocks != 0 ? grid_search_of(format->grid) : NULL;
    for (size_t i = 0; i < n_blocks; i++)
        encode_block(search, format, tables, values + i * IQ_ELEMENTS,
                     importance != NULL ? importance + i * IQ_ELEMENTS : NULL, blocks + i * format->block_bytes);
}
