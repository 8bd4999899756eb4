#include "quant/blocks/iq_format.h"

#include <float.h>

/* Returns the point nearest to `values` under `scale`, among the neighbours of levels off the grid; the levels become
 * the point's. */
static unsigned nearest_neighbour(const struct grid_search *search, unsigned code, const float *values,
                                  const float *roots, float scale, uint8_t *levels)
{
    const struct grid *grid = search->grid;
    unsigned nearest = search->neighbour[search->first[code]];
    float least = FLT_MAX;
    for (uint32_t i = search->first[code]; i < search->first[code + 1]; i++) {
        const uint8_t *point = grid_point(grid, search->neighbour[i]);
        float distance = 0;
        for (unsigned j = 0; j < grid->dimension; j++) {
            float difference = scale * (float)(2 * point[j] + 1) - values[j];
            distance += roots[j] * difference * difference;
        }
        if (distance < least) {
            least = distance;
            nearest = search->neighbour[i];
        }
    }
    memcpy(levels, grid_point(grid, nearest), grid->dimension);
    return nearest;
}

/* Finds the levels of one group under a scale, snapped to the grid; returns false if they were off it. */
static bool snap(const struct grid_search *search, const float *values, const float *roots, float inverse, float scale,
                 uint8_t *levels, uint16_t *ret_point)
{
    const struct grid *grid = search->grid;
    for (unsigned j = 0; j < grid->dimension; j++)
        levels[j] = (uint8_t)iq_level(inverse, values[j], (int)grid->n_levels - 1);
    unsigned code = grid_code(grid, levels);
    bool on_grid = search->index[code] >= 0;
    *ret_point = on_grid ? (uint16_t)search->index[code]
                         : (uint16_t)nearest_neighbour(search, code, values, roots, scale, levels);
    return on_grid;
}

struct
try {
    uint8_t levels[IQ_MOST_SUB_ELEMENTS];
    uint16_t points[8];
    bool on_grid[8];
};

static void sum_up(int n, const float *values, const float *weights, const uint8_t *levels, float *ret_qx,
                   float *ret_q2)
{
    float sum_qx = 0, sum_q2 = 0;
    for (int i = 0; i < n; i++) {
        float q = (float)(2 * levels[i] + 1);
        sum_qx += weights[i] * values[i] * q;
        sum_q2 += weights[i] * q * q;
    }
    *ret_qx = sum_qx;
    *ret_q2 = sum_q2;
}

static float search_tries(const struct iq_format *format, const struct grid_search *search, const float *magnitudes,
                          const float *weights, float begin, float scale, uint16_t *points)
{
    const struct grid *grid = search->grid;
    int n = format->sub_elements, dimension = (int)grid->dimension, n_points = n / dimension;
    float roots[IQ_MOST_SUB_ELEMENTS], best = 0, sum_qx, sum_q2;
    struct try kept = {0}, tried;
    bool all_on_grid = true;
    for (int i = 0; i < n; i++)
        roots[i] = sqrtf(weights[i]);
    for (int k = 0; k < n_points; k++)
        kept.on_grid[k] = !format->begins_off;
    for (int step = -format->n_steps; step <= format->n_steps; step++) {
        float inverse = iq_inverse(format, grid, step, begin);
        for (int k = 0, at = 0; k < n_points; k++, at += dimension)
            tried.on_grid[k] =
                snap(search, magnitudes + at, roots + at, inverse, 1 / inverse, tried.levels + at, &tried.points[k]);
        sum_up(n, magnitudes, weights, tried.levels, &sum_qx, &sum_q2);
        if (!(sum_q2 > 0 && sum_qx * sum_qx > best * sum_q2))
            continue;
        scale = sum_qx / sum_q2;
        best = scale * sum_qx;
        kept = tried;
    }
    for (int k = 0; k < n_points; k++)
        all_on_grid &= kept.on_grid[k];
    if ((format->positive || !all_on_grid) && scale > 0) {
        for (int k = 0, at = 0; k < n_points; k++, at += dimension)
            if (format->redoes_all || !kept.on_grid[k])
                snap(search, magnitudes + at, roots + at, 1 / scale, scale, kept.levels + at, &kept.points[k]);
        sum_up(n, magnitudes, weights, kept.levels, &sum_qx, &sum_q2);
        if (sum_q2 > 0)
            scale = sum_qx / sum_q2;
    }
    memcpy(points, kept.points, (size_t)n_points * sizeof *points);
    return scale;
}

void iq_encode(const struct iq_format *format, const float *values, const float *importance, uint8_t *blocks,
               size_t n_blocks)
{
    encode_blocks(search_tries, format, values, importance, blocks, n_blocks);
}

static inline void decode_group(const uint8_t magnitudes[8], const uint8_t levels[IQ_GROUP], uint8_t signs, float scale,
                                float *values)
{
    for (int i = 0; i < IQ_GROUP; i++)
        values[i] = scale * (float)magnitudes[levels[i]] * (signs >> i & 1 ? -1.f : 1.f);
}

void iq_decode(const struct iq_format *format, const uint8_t *blocks, float *values, size_t n_blocks)
{
    iq_decode_by(decode_group, format, blocks, values, n_blocks);
}
