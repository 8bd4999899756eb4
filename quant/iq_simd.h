/* The search of iq_format.h with the tries side by side, one a lane: included by iq_avx2.c and iq_avx512.c, which
 * define LANES, IQ_NAME(name), what its functions are called there, and the types vf and vi (LANES numbers) with their
 * primitives.
 *
 * Every lane does what iq_search() does for its try, in the same order of operations, so the bits are the same. A group
 * that is off the grid is snapped for one try at a time, its neighbours side by side: a value has few levels, so what
 * each adds to the distance is found once, and looked up by the levels of the neighbours. */
#include "quant/iq_format.h"

#include <float.h>
#include <string.h>

enum { MOST_TRIES = 32, MOST_VECTORS = MOST_TRIES / LANES, MOST_GROUPS = 8 };

#define EACH_VECTOR(v) for (int v = 0; v < MOST_VECTORS; v++)

struct tries {
    int n;
    vf inverse[MOST_VECTORS], sum_qx[MOST_VECTORS], sum_q2[MOST_VECTORS];
    float scales[MOST_TRIES];
    uint16_t points[MOST_GROUPS][MOST_TRIES];
    uint32_t off_grid[MOST_GROUPS]; /* a bit for each try */
};

/* What a group of values is to a search. */
struct group {
    const float *values, *weights, *roots;
};

/* nearest_int() and clamp_int(). */
static inline vi nearest_level(vf value, int most)
{
    return v_clamp(((vi)(value + 12582912.f) & 0x007fffff) - 0x00400000, most);
}

/* `numbers` is what levels stand for. Where in its list the neighbour is that is nearest under the scale; the first of
 * several, and where none is. */
static inline uint32_t nearest_neighbour(const struct grid_search *search, unsigned code, const struct group *group,
                                         vf numbers, float scale, int dimension)
{
    const int bits = dimension == 8 ? 2 : 3;
    const uint16_t *packed = search->packed + search->first[code];
    int count = (int)(search->first[code + 1] - search->first[code]);
    vf terms[8];
    for (int i = 0; i < dimension; i++) {
        vf difference = scale * numbers - group->values[i];
        terms[i] = group->roots[i] * difference * difference;
    }
    vf least = FLT_MAX - (vf){0};
    vi at = {0};
    for (int first = 0; first < count; first += LANES) {
        vi levels = v_load_words(packed + first), place = lane_numbers + first;
        vf distance = v_look_up(terms[0], levels);
        for (int i = 1; i < dimension; i++)
            distance += v_look_up(terms[i], levels >> bits * i);
        v_keep_less(&least, &at, distance, place, count);
    }
    uint32_t lanes = v_lanes_of_least(least);
    if (count <= LANES)
        return (uint32_t)__builtin_ctz(lanes);
    _Alignas(64) int32_t places[LANES];
    memcpy(places, &at, sizeof places);
    int32_t place = places[__builtin_ctz(lanes)];
    for (lanes &= lanes - 1; lanes != 0; lanes &= lanes - 1)
        place = places[__builtin_ctz(lanes)] < place ? places[__builtin_ctz(lanes)] : place;
    return (uint32_t)place;
}

/* What the levels of IQ2 and IQ3 stand for, as a table for v_look_up(). */
static inline vf level_numbers(int dimension)
{
    return __builtin_convertvector(((lane_numbers & (dimension == 8 ? 3 : 7)) << 1) + 1, vf);
}

/* The points of group k under each try, and what they add to its sums. */
static inline void try_group(const struct grid_search *search, const struct group *group, struct tries *tries, int k,
                             int dimension)
{
    const int bits = dimension == 8 ? 2 : 3, most = (1 << bits) - 1 - (dimension == 8);
    _Alignas(64) int32_t codes[MOST_TRIES], packed[MOST_TRIES];
    vi code[MOST_VECTORS] = {0}, levels[MOST_VECTORS] = {0};
    for (int i = dimension - 1; i >= 0; i--)
        EACH_VECTOR(v)
        {
            vi level = nearest_level(0.5f * (tries->inverse[v] * group->values[i] - 1), most);
            code[v] = (dimension == 8 ? code[v] + code[v] + code[v] : code[v] << 3) + level;
            levels[v] = levels[v] << bits | level;
        }
    memcpy(codes, code, sizeof codes);
    memcpy(packed, levels, sizeof packed);
    tries->off_grid[k] = 0;
    for (int t = 0; t < tries->n; t++) {
        int index = search->index[codes[t]];
        if (index < 0) {
            uint32_t place =
                search->first[codes[t]] + nearest_neighbour(search, (unsigned)codes[t], group, level_numbers(dimension),
                                                            tries->scales[t], dimension);
            index = search->neighbour[place];
            packed[t] = search->packed[place];
            tries->off_grid[k] |= 1u << t;
        }
        tries->points[k][t] = (uint16_t)index;
    }
    memcpy(levels, packed, sizeof packed);
    for (int i = 0; i < dimension; i++)
        EACH_VECTOR(v)
        {
            vf q = __builtin_convertvector(((levels[v] >> bits * i & ((1 << bits) - 1)) << 1) + 1, vf);
            tries->sum_qx[v] += group->weights[i] * group->values[i] * q;
            tries->sum_q2[v] += group->weights[i] * q * q;
        }
}

/* The best try; -1 where none gives anything. */
static int best_try(const struct tries *tries, float *scale)
{
    float sums_qx[MOST_TRIES], sums_q2[MOST_TRIES], best = 0;
    int kept = -1;
    memcpy(sums_qx, tries->sum_qx, sizeof sums_qx);
    memcpy(sums_q2, tries->sum_q2, sizeof sums_q2);
    for (int t = 0; t < tries->n; t++)
        if (sums_q2[t] > 0 && sums_qx[t] * sums_qx[t] > best * sums_q2[t]) {
            *scale = sums_qx[t] / sums_q2[t];
            best = *scale * sums_qx[t];
            kept = t;
        }
    return kept;
}

/* Snaps the groups again under the scale that was found; returns the scale that suits them. */
static inline float redo(const struct iq_format *format, const struct grid_search *search, const struct group *groups,
                         int n_groups, uint32_t off_grid, float scale, uint16_t *points, int dimension)
{
    const struct grid *grid = search->grid;
    float sum_qx = 0, sum_q2 = 0, inverse = 1 / scale;
    for (int k = 0; k < n_groups; k++) {
        uint8_t levels[8];
        if (format->redoes_all || (off_grid >> k & 1) != 0) {
            for (int i = 0; i < dimension; i++)
                levels[i] = (uint8_t)iq_level(inverse, groups[k].values[i], (int)grid->n_levels - 1);
            unsigned code = grid_code(grid, levels);
            int index = search->index[code];
            if (index < 0)
                index = search->neighbour[search->first[code] + nearest_neighbour(search, code, &groups[k],
                                                                                  level_numbers(dimension), scale,
                                                                                  dimension)];
            points[k] = (uint16_t)index;
        }
        const uint8_t *point = grid_point(grid, points[k]);
        for (int i = 0; i < dimension; i++) {
            float q = (float)(2 * point[i] + 1), weight = groups[k].weights[i];
            sum_qx += weight * groups[k].values[i] * q;
            sum_q2 += weight * q * q;
        }
    }
    return sum_q2 > 0 ? sum_qx / sum_q2 : scale;
}

static inline float search_groups(const struct iq_format *format, const struct grid_search *search,
                                  const float *magnitudes, const float *weights, float begin, float scale,
                                  uint16_t *points, int dimension)
{
    int n = format->sub_elements, n_groups = n / dimension;
    _Alignas(64) float roots[IQ_MOST_SUB_ELEMENTS], inverses[MOST_TRIES];
    struct group groups[MOST_GROUPS];
    struct tries tries = {.n = 2 * format->n_steps + 1};
    for (int i = 0; i < n; i += LANES)
        v_store(roots + i, v_root(v_load(weights + i)));
    for (int t = 0; t < MOST_TRIES; t++) {
        inverses[t] = iq_inverse(format, search->grid, (t < tries.n ? t : 0) - format->n_steps, begin);
        tries.scales[t] = 1 / inverses[t];
    }
    memcpy(tries.inverse, inverses, sizeof inverses);
    for (int k = 0; k < n_groups; k++) {
        groups[k] = (struct group){magnitudes + k * dimension, weights + k * dimension, roots + k * dimension};
        try_group(search, &groups[k], &tries, k, dimension);
    }
    int kept = best_try(&tries, &scale);
    uint32_t off_grid = 0;
    for (int k = 0; k < n_groups; k++) {
        points[k] = kept >= 0 ? tries.points[k][kept] : 0;
        off_grid |= (kept >= 0 ? tries.off_grid[k] >> kept & 1 : format->begins_off) << k;
    }
    if ((format->positive || off_grid != 0) && scale > 0)
        scale = redo(format, search, groups, n_groups, off_grid, scale, points, dimension);
    return scale;
}

float IQ_NAME(iq_search)(const struct iq_format *format, const struct grid_search *search, const float *magnitudes,
                         const float *weights, float begin, float scale, uint16_t *points)
{
    return search->grid->dimension == 8 ? search_groups(format, search, magnitudes, weights, begin, scale, points, 8)
                                        : search_groups(format, search, magnitudes, weights, begin, scale, points, 4);
}
