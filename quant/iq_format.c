#include "quant/iq_format.h"

#include "quant/f16.h"
#include "quant/weights.h"

#include <float.h>

/* The point nearest to `values` under `scale` among the neighbours of levels that are off the grid; sets the levels to
 * its own.
 */
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

/* The levels of one group under a scale, snapped to the grid; false where they were off it. */
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

float iq_search(const struct iq_format *format, const struct grid_search *search, const float *magnitudes,
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

/* The magnitudes of a group, and its signs. Where their number has to be even the sign of the value that matters least
 * is changed: what is left of that one then is negative. */
static unsigned take_signs(bool even_signs, const float *values, const float *weights, float *magnitudes)
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

static void find_weights(const struct iq_format *format, const float *values, const float *importance, float *weights)
{
    float mean_square = format->mean_factor * sum_of_squares(values, IQ_ELEMENTS) / IQ_ELEMENTS;
    if (importance != NULL)
        importance_weights(values, importance, mean_square, IQ_ELEMENTS, weights);
    for (int i = 0; importance == NULL && i < IQ_ELEMENTS; i++)
        weights[i] = (format->plain_share != 0 ? format->plain_share * mean_square : 0) + values[i] * values[i];
}

static float search_sub_block(iq_search_function *search, const struct iq_format *format,
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

static void encode_block(iq_search_function *search, const struct iq_format *format, const struct grid_search *tables,
                         const float *values, const float *importance, uint8_t *block)
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

void iq_encode_by(iq_search_function *search, const struct iq_format *format, const float *values,
                  const float *importance, uint8_t *blocks, size_t n_blocks)
{
    const struct grid_search *tables = n_blocks != 0 ? grid_search_of(format->grid) : NULL;
    for (size_t i = 0; i < n_blocks; i++)
        encode_block(search, format, tables, values + i * IQ_ELEMENTS,
                     importance != NULL ? importance + i * IQ_ELEMENTS : NULL, blocks + i * format->block_bytes);
}

void iq_decode(const struct iq_format *format, const uint8_t *blocks, float *values, size_t n_blocks)
{
    const struct grid *grid = grid_of(format->grid);
    for (size_t b = 0; b < n_blocks; b++, blocks += format->block_bytes, values += IQ_ELEMENTS) {
        struct iq_unpacked unpacked;
        format->unpack(blocks, &unpacked);
        for (int i = 0; i < IQ_ELEMENTS / IQ_GROUP; i++) {
            uint8_t levels[IQ_GROUP];
            iq_load_levels(grid, unpacked.points, i, levels);
            for (int j = 0; j < IQ_GROUP; j++)
                values[IQ_GROUP * i + j] = unpacked.scales[i] * (float)format->magnitudes[levels[j]] *
                                           (unpacked.signs[i] >> j & 1 ? -1.f : 1.f);
        }
    }
}
