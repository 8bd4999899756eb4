/* The K formats with sub-blocks side by side, one a lane: included by k_avx2.c and k_avx512.c, which define LANES,
 * K_NAME(name), what its functions are called there, and the types vf (LANES numbers) and vm (a mask) with their primitives.
 *
 * Every lane does what k_search.c does for its sub-block, in the same order of operations, so the bits are the same;
 * what is a branch there is a mask here. The sums of a lane are one long chain of additions: two vectors are worked on in turn,
 * so that one computes while the other waits. Sub-blocks of neighbouring blocks follow each other in memory, so a vector may span
 * blocks. */
#include "quant/k_format.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum { VECTORS = 2, WIDTH = VECTORS * LANES };

#define EACH_VECTOR(v) for (int v = 0; v < VECTORS; v++)

/* WIDTH sub-blocks: value i of all of them is x[i]. */
typedef vf wide[VECTORS];

struct v_search {
    wide x[32], weights[32], levels[32], scale, minimum;
};

/* k_level() of every lane. */
static inline vf v_level(vf value, vf low, vf high)
{
    return v_min(v_max(value, low), high) + v_set(K_ROUND) - v_set(K_ROUND);
}

/* Turns LANES vectors of LANES into their transpose: every round deals the halves into each other. */
static inline void v_transpose(vf rows[LANES])
{
    vf dealt[LANES];
    for (int round = 1; round < LANES; round *= 2) {
        for (int i = 0; i < LANES / 2; i++)
            v_interleave(rows[i], rows[i + LANES / 2], &dealt[2 * i], &dealt[2 * i + 1]);
        memcpy(rows, dealt, sizeof dealt);
    }
}

static inline void load_lanes(const float *values, int n, wide *x)
{
    vf rows[LANES];
    EACH_VECTOR(v)
    for (int first = 0; first < n; first += LANES) {
        for (int lane = 0; lane < LANES; lane++)
            rows[lane] = v_load(values + (v * LANES + lane) * n + first);
        v_transpose(rows);
        for (int i = 0; i < LANES; i++)
            x[first + i][v] = rows[i];
    }
}

static inline void store_levels(wide *levels, int n, uint8_t *out)
{
    vf rows[LANES];
    EACH_VECTOR(v)
    for (int first = 0; first < n; first += LANES) {
        for (int i = 0; i < LANES; i++)
            rows[i] = levels[first + i][v];
        v_transpose(rows);
        for (int lane = 0; lane < LANES; lane++)
            v_store_bytes(rows[lane], out + (v * LANES + lane) * n + first);
    }
}

/* The sums of one step of k_search_range(). */
struct v_range_sums {
    wide l, l2, xl;
};

static inline void v_sum_levels(struct v_search *search, int n, wide inverse, wide minimum, vf n_max, struct v_range_sums *sums)
{
    wide usable;
    EACH_VECTOR(v)
    {
        usable[v] = v_select(v_equal(v_abs(inverse[v]), v_set(INFINITY)), v_set(0), inverse[v]);
        sums->l[v] = sums->l2[v] = sums->xl[v] = v_set(0);
    }
    for (int i = 0; i < n; i++)
        EACH_VECTOR(v)
        {
            vf level = v_level(usable[v] * (search->x[i][v] - minimum[v]), v_set(0), n_max);
            vf weighted = search->weights[i][v] * level;
            search->levels[i][v] = level;
            sums->l[v] += weighted;
            sums->l2[v] += weighted * level;
            sums->xl[v] += weighted * search->x[i][v];
        }
}

static inline void v_range_error(struct v_search *search, int n, bool absolute, wide scale, wide minimum, wide error)
{
    EACH_VECTOR(v) error[v] = v_set(0);
    for (int i = 0; i < n; i++)
        EACH_VECTOR(v)
        {
            vf difference = scale[v] * search->levels[i][v] + minimum[v] - search->x[i][v], weighed = difference * difference;
            if (absolute)
                weighed = v_abs(difference);
            error[v] += search->weights[i][v] * weighed;
        }
}

/* k_search_range(). Of the best levels only how to make them again is kept: their scale and minimum. */
static inline void v_search_range(struct v_search *search, const struct k_range_search *range, int n, bool absolute)
{
    wide *x = search->x, *w = search->weights;
    wide minimum, maximum, sum_w, sum_x, lowest, inverse, scale, best, best_inverse, best_minimum;
    vf n_max = v_set((float)range->n_max);
    struct v_range_sums sums;
    EACH_VECTOR(v)
    {
        minimum[v] = maximum[v] = x[0][v];
        sum_w[v] = w[0][v];
        sum_x[v] = w[0][v] * x[0][v];
    }
    for (int i = 1; i < n; i++)
        EACH_VECTOR(v)
        {
            minimum[v] = v_min(x[i][v], minimum[v]);
            maximum[v] = v_max(x[i][v], maximum[v]);
            sum_w[v] += w[i][v];
            sum_x[v] += w[i][v] * x[i][v];
        }
    EACH_VECTOR(v)
    {
        minimum[v] = v_select(v_less(v_set(0), minimum[v]), v_set(0), minimum[v]);
        lowest[v] = best_minimum[v] = minimum[v];
        inverse[v] = best_inverse[v] = n_max / (maximum[v] - minimum[v]);
        scale[v] = v_set(1) / inverse[v];
    }
    v_sum_levels(search, n, inverse, minimum, n_max, &sums);
    v_range_error(search, n, absolute, scale, minimum, best);
    for (int step = 0; step <= range->n_steps; step++) {
        wide determinant, tried_scale, tried_minimum, error;
        EACH_VECTOR(v)
        inverse[v] = v_set(range->r_min + range->r_delta * (float)step + (float)range->n_max) / (maximum[v] - minimum[v]);
        v_sum_levels(search, n, inverse, minimum, n_max, &sums);
        EACH_VECTOR(v)
        {
            determinant[v] = sum_w[v] * sums.l2[v] - sums.l[v] * sums.l[v];
            tried_scale[v] = (sum_w[v] * sums.xl[v] - sum_x[v] * sums.l[v]) / determinant[v];
            tried_minimum[v] = (sums.l2[v] * sum_x[v] - sums.l[v] * sums.xl[v]) / determinant[v];
            vm above = v_less(v_set(0), tried_minimum[v]);
            tried_minimum[v] = v_select(above, v_set(0), tried_minimum[v]);
            tried_scale[v] = v_select(above, sums.xl[v] / sums.l2[v], tried_scale[v]);
        }
        v_range_error(search, n, absolute, tried_scale, tried_minimum, error);
        EACH_VECTOR(v)
        {
            vm better = v_both(v_less(v_set(0), determinant[v]), v_less(error[v], best[v]));
            best[v] = v_select(better, error[v], best[v]);
            scale[v] = v_select(better, tried_scale[v], scale[v]);
            best_inverse[v] = v_select(better, inverse[v], best_inverse[v]);
            best_minimum[v] = v_select(better, minimum[v], best_minimum[v]);
            minimum[v] = v_select(better, tried_minimum[v], minimum[v]);
        }
    }
    v_sum_levels(search, n, best_inverse, best_minimum, n_max, &sums);
    EACH_VECTOR(v)
    {
        vm flat = v_equal(maximum[v], lowest[v]);
        for (int i = 0; i < n; i++)
            search->levels[i][v] = v_select(flat, v_set(0), search->levels[i][v]);
        search->scale[v] = v_select(flat, v_set(0), scale[v]);
        search->minimum[v] = -v_select(flat, lowest[v], minimum[v]);
    }
}

/* Weights x * x, and x times them in `weighted`; the value of the largest magnitude. */
static inline void v_square_weights(struct v_search *search, int n, wide *weighted, wide largest)
{
    wide magnitude;
    EACH_VECTOR(v) largest[v] = magnitude[v] = v_set(0);
    for (int i = 0; i < n; i++)
        EACH_VECTOR(v)
        {
            vf x = search->x[i][v];
            vm larger = v_less(magnitude[v], v_abs(x));
            magnitude[v] = v_select(larger, v_abs(x), magnitude[v]);
            largest[v] = v_select(larger, x, largest[v]);
            search->weights[i][v] = x * x;
            weighted[i][v] = search->weights[i][v] * x;
        }
}

/* k_search_symmetric(); the levels are counted from 0. */
static inline void v_search_symmetric(struct v_search *search, int n, int n_max)
{
    wide weighted[16], largest, best_scale, best, best_inverse;
    vf low = v_set((float)-n_max), high = v_set((float)(n_max - 1));
    v_square_weights(search, n, weighted, largest);
    EACH_VECTOR(v)
    best_scale[v] = best[v] = best_inverse[v] = v_set(0);
    for (int step = 0; step <= 18; step++) {
        int tenths = step <= 9 ? step - 10 : step - 9;
        wide inverse, sum_lx, sum_l2;
        EACH_VECTOR(v)
        {
            inverse[v] = v_set(step == 0 ? -(float)n_max : -((float)n_max + 0.1f * (float)tenths)) / largest[v];
            sum_lx[v] = sum_l2[v] = v_set(0);
        }
        for (int i = 0; i < n; i++)
            EACH_VECTOR(v)
            {
                vf level = v_level(inverse[v] * search->x[i][v], low, high);
                sum_lx[v] += weighted[i][v] * level;
                sum_l2[v] += search->weights[i][v] * level * level;
            }
        EACH_VECTOR(v)
        {
            vf scale = sum_lx[v] / sum_l2[v];
            if (step == 0) {
                best_scale[v] = v_select(v_equal(sum_l2[v], v_set(0)), v_set(0), scale);
                best[v] = best_scale[v] * sum_lx[v];
                best_inverse[v] = inverse[v];
                continue;
            }
            vm better = v_both(v_less(v_set(0), sum_l2[v]), v_less(best[v] * sum_l2[v], sum_lx[v] * sum_lx[v]));
            best_scale[v] = v_select(better, scale, best_scale[v]);
            best[v] = v_select(better, scale * sum_lx[v], best[v]);
            best_inverse[v] = v_select(better, inverse[v], best_inverse[v]);
        }
    }
    EACH_VECTOR(v)
    {
        vm negligible = v_less(v_abs(largest[v]), v_set(K_NEGLIGIBLE));
        for (int i = 0; i < n; i++) {
            vf level = v_level(best_inverse[v] * search->x[i][v], low, high) - low;
            search->levels[i][v] = v_select(negligible, v_set(0), level);
        }
        search->scale[v] = v_select(negligible, v_set(0), best_scale[v]);
    }
}

/* k_search_refined(), the levels counted from 0. Lanes that no longer change wait for the others; a value that no lane changes
 * its level of is passed by, so that the next need not wait for it. */
static inline void v_search_refined(struct v_search *search, int n, int n_max)
{
    wide weighted[16], largest, sum_lx, sum_l2;
    vf low = v_set((float)-n_max), high = v_set((float)(n_max - 1));
    vm negligible[VECTORS], going[VECTORS], none = v_less(v_set(0), v_set(0));
    v_square_weights(search, n, weighted, largest);
    EACH_VECTOR(v)
    {
        vf inverse = v_set((float)-n_max) / largest[v];
        negligible[v] = v_less(v_abs(largest[v]), v_set(K_NEGLIGIBLE));
        going[v] = v_not(negligible[v]);
        sum_lx[v] = sum_l2[v] = v_set(0);
        for (int i = 0; i < n; i++) {
            vf level = v_level(inverse * search->x[i][v], low, high);
            search->levels[i][v] = level;
            sum_lx[v] += weighted[i][v] * level;
            sum_l2[v] += search->weights[i][v] * level * level;
        }
    }
    for (int pass = 0; pass < 5; pass++) {
        vm changed[VECTORS];
        EACH_VECTOR(v) changed[v] = none;
        for (int i = 0; i < n; i++)
            EACH_VECTOR(v)
            {
                vf x = search->x[i][v], weight = search->weights[i][v], kept = search->levels[i][v];
                vf without_lx = sum_lx[v] - weighted[i][v] * kept, without_l2 = sum_l2[v] - weight * kept * kept;
                vf level = v_min(v_max(v_nearest(x * without_l2 / without_lx), low), high);
                vm accept = v_both(going[v], v_both(v_less(v_set(0), without_lx), v_not(v_equal(level, kept))));
                if (!v_any(accept))
                    continue;
                without_lx += weighted[i][v] * level;
                without_l2 += weight * level * level;
                vm better = v_less(sum_lx[v] * sum_lx[v] * without_l2, without_lx * without_lx * sum_l2[v]);
                accept = v_both(accept, v_both(v_less(v_set(0), without_l2), better));
                search->levels[i][v] = v_select(accept, level, kept);
                sum_lx[v] = v_select(accept, without_lx, sum_lx[v]);
                sum_l2[v] = v_select(accept, without_l2, sum_l2[v]);
                changed[v] = v_either(changed[v], accept);
            }
        vm any = none;
        EACH_VECTOR(v)
        {
            going[v] = v_both(going[v], changed[v]);
            any = v_either(any, going[v]);
        }
        if (!v_any(any))
            break;
    }
    EACH_VECTOR(v)
    {
        for (int i = 0; i < n; i++)
            search->levels[i][v] = v_select(negligible[v], v_set(0), search->levels[i][v] - low);
        vm usable = v_both(v_not(negligible[v]), v_less(v_set(0), sum_l2[v]));
        search->scale[v] = v_select(usable, sum_lx[v] / sum_l2[v], v_set(0));
    }
}

/* Levels under the scales that were stored; where a scale is 0 those of the search stay. */
static inline void v_requantize(struct v_search *search, const struct k_format *format)
{
    vf low = v_set((float)format->low), high = v_set((float)format->high);
    for (int i = 0; i < format->sub_elements; i++)
        EACH_VECTOR(v)
        {
            vf level = v_level((search->x[i][v] + search->minimum[v]) / search->scale[v], low, high) - low;
            search->levels[i][v] = v_select(v_equal(search->scale[v], v_set(0)), search->levels[i][v], level);
        }
}

static inline void v_magnitude_weights(struct v_search *search, int n, bool with_average)
{
    EACH_VECTOR(v)
    {
        vf squares = v_set(0), average = v_set(0);
        if (with_average) {
            for (int i = 0; i < n; i++)
                squares += search->x[i][v] * search->x[i][v];
            average = v_sqrt(squares / v_set((float)n));
        }
        for (int i = 0; i < n; i++)
            search->weights[i][v] = average + v_abs(search->x[i][v]);
    }
}

/* Each kind with its number of values as a constant, so that the loops unroll. */
static void v_search(struct v_search *search, const struct k_format *format, const float *values)
{
    load_lanes(values, format->sub_elements, search->x);
    EACH_VECTOR(v) search->minimum[v] = v_set(0);
    switch (format->kind) {
    case K_RANGE_MAGNITUDE:
        v_magnitude_weights(search, 16, false);
        v_search_range(search, &format->range, 16, true);
        break;
    case K_RANGE_AVERAGE:
        v_magnitude_weights(search, 32, true);
        v_search_range(search, &format->range, 32, false);
        break;
    case K_REFINED:
        v_search_refined(search, 16, -format->low);
        break;
    case K_SYMMETRIC:
        v_search_symmetric(search, 16, -format->low);
        break;
    }
}

enum { STRETCH_BLOCKS = 4, MOST_SEARCHES = STRETCH_BLOCKS * K_MOST_SUB_BLOCKS / WIDTH };

/* STRETCH_BLOCKS blocks: as many as fill whole vectors whatever the format. */
static void v_encode_stretch(const struct k_format *format, const float *values, uint8_t *blocks)
{
    struct v_search searches[MOST_SEARCHES];
    float scales[STRETCH_BLOCKS * K_MOST_SUB_BLOCKS], minimums[STRETCH_BLOCKS * K_MOST_SUB_BLOCKS];
    uint8_t levels[STRETCH_BLOCKS * K_ELEMENTS];
    bool zero[STRETCH_BLOCKS];
    int n = format->sub_elements, n_sub = K_ELEMENTS / n, n_searches = STRETCH_BLOCKS * n_sub / WIDTH;
    for (int s = 0; s < n_searches; s++) {
        v_search(&searches[s], format, values + s * WIDTH * n);
        memcpy(scales + s * WIDTH, searches[s].scale, sizeof searches[s].scale);
        memcpy(minimums + s * WIDTH, searches[s].minimum, sizeof searches[s].minimum);
    }
    for (int b = 0; b < STRETCH_BLOCKS; b++) {
        uint8_t *block = blocks + (size_t)b * format->block_bytes;
        zero[b] = !format->store_scales(scales + b * n_sub, minimums + b * n_sub, block);
        if (zero[b])
            memset(block, 0, format->block_bytes);
        format->load_scales(block, scales + b * n_sub, minimums + b * n_sub);
    }
    for (int s = 0; s < n_searches; s++) {
        memcpy(searches[s].scale, scales + s * WIDTH, sizeof searches[s].scale);
        memcpy(searches[s].minimum, minimums + s * WIDTH, sizeof searches[s].minimum);
        v_requantize(&searches[s], format);
        store_levels(searches[s].levels, n, levels + s * WIDTH * n);
    }
    for (int b = 0; b < STRETCH_BLOCKS; b++)
        if (!zero[b])
            format->pack(levels + b * K_ELEMENTS, blocks + (size_t)b * format->block_bytes);
}

void K_NAME(k_encode)(const struct k_format *format, const float *values, uint8_t *blocks, size_t n_blocks)
{
    enum { MOST_BLOCK_BYTES = 256 };
    size_t i = 0, left;
    for (; i + STRETCH_BLOCKS <= n_blocks; i += STRETCH_BLOCKS)
        v_encode_stretch(format, values + i * K_ELEMENTS, blocks + i * format->block_bytes);
    if ((left = n_blocks - i) != 0) { /* the last ones with zeros behind them */
        float padded[STRETCH_BLOCKS * K_ELEMENTS] = {0};
        uint8_t encoded[STRETCH_BLOCKS * MOST_BLOCK_BYTES];
        memcpy(padded, values + i * K_ELEMENTS, left * K_ELEMENTS * sizeof *values);
        v_encode_stretch(format, padded, encoded);
        memcpy(blocks + i * format->block_bytes, encoded, left * format->block_bytes);
    }
}
