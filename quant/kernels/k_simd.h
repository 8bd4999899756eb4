/* The K formats with one sub-block a lane: included by k_neon.c, k_avx2.c and k_avx512.c, which define LANES,
 * K_NAME(name) for the names of functions, and the types vf (LANES numbers) and vm (a mask) with their primitives.
 *
 * Every lane computes its sub-block in k_search.c's order of operations, so the bits are the same; masks replace
 * branches. The sums of a lane are one long chain of additions: two vectors take turns, so that one computes while the
 * other waits. Sub-blocks of neighbouring blocks are adjacent in memory, so a vector may span blocks. */
#include "quant/blocks/k_format.h"
#include "quant/blocks/weights.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum { VECTORS = 2, WIDTH = VECTORS * LANES };

#define EACH_VECTOR(v) for (int v = 0; v < VECTORS; v++)

/* Blocks in a stretch, which are processed together: whole vectors for every format, if they are a multiple of
 * WHOLE_BLOCKS. The scales of a stretch's blocks may be searched side by side, too: there is room for whole vectors. */
enum {
    STRETCH_BLOCKS = 32,
    STRETCH_SUB_BLOCKS = STRETCH_BLOCKS * K_MOST_SUB_BLOCKS,
    STRETCH_ROOM = (STRETCH_BLOCKS + VECTORS * LANES - 1) / (VECTORS * LANES) * VECTORS * LANES * K_MOST_SUB_BLOCKS,
    WHOLE_BLOCKS = 4,
};

/* A number for each of WIDTH sub-blocks. */
typedef vf wide[VECTORS];

/* The fields of value i of each sub-block. They are together: separate arrays would lie a multiple of 4096 bytes apart,
 * and compete for the same cache lines. */
struct v_value {
    wide x, weight, weighted, level;
};

/* The result of a search. Its levels are k_level(inverse * (x - offset)); if `inverse` is NaN, all are the lowest. */
struct v_found {
    wide scale, minimum, inverse, offset;
};

/* The results for the sub-blocks of a stretch. Refined levels do not follow from `inverse`, which is infinite then:
 * they are in `refined`, counted from the lowest. */
struct found {
    _Alignas(64) float scales[STRETCH_ROOM], minimums[STRETCH_SUB_BLOCKS];
    _Alignas(64) float inverses[STRETCH_SUB_BLOCKS], offsets[STRETCH_SUB_BLOCKS];
    _Alignas(64) float weights[STRETCH_ROOM]; /* sums of the given weights */
    uint8_t refined[STRETCH_SUB_BLOCKS][16];
};

/* Like k_level(), for every lane, without rounding. */
static inline vf v_limit(vf value, vf low, vf high)
{
    return v_min(v_max(value, low), high);
}

/* Like k_level(), for every lane. */
static inline vf v_level(vf value, vf low, vf high)
{
    return v_round(v_limit(value, low, high));
}

/* Transposes four vectors within every 128 bits: each round interleaves the halves. */
static inline void v_transpose(vf rows[4])
{
    vf dealt[4];
    for (int round = 1; round < 4; round *= 2) {
        for (int i = 0; i < 2; i++) {
            dealt[2 * i] = v_interleave_low(rows[i], rows[i + 2]);
            dealt[2 * i + 1] = v_interleave_high(rows[i], rows[i + 2]);
        }
        memcpy(rows, dealt, sizeof dealt);
    }
}

/* Loads the values of WIDTH sub-blocks of n; value i goes to x[i * stride]. */
static inline void load_lanes(const float *values, int n, wide *x, int stride)
{
    vf rows[4];
    EACH_VECTOR(v)
    for (int first = 0; first < n; first += 4) {
        for (int i = 0; i < 4; i++)
            rows[i] = v_load_quads(values + (v * LANES + i) * n + first, n);
        v_transpose(rows);
        for (int i = 0; i < 4; i++)
            x[(first + i) * stride][v] = rows[i];
    }
}

/* Finds the value of the largest of n magnitudes, the first of equals. */
static inline void v_signed_largest(wide *x, int n, int stride, wide largest)
{
    wide above, below;
    EACH_VECTOR(v) above[v] = below[v] = v_set(0);
    for (int i = 0; i < n; i++)
        EACH_VECTOR(v)
        {
            above[v] = v_max(x[i * stride][v], above[v]);
            below[v] = v_min(x[i * stride][v], below[v]);
        }
    EACH_VECTOR(v)
    {
        largest[v] = v_select(v_less(above[v], -below[v]), below[v], above[v]);
        if (v_bits(v_equal(above[v], -below[v])) != 0)
            for (int i = n - 1; i >= 0; i--) {
                vf value = x[i * stride][v];
                largest[v] = v_select(v_equal(v_abs(value), v_abs(largest[v])), value, largest[v]);
            }
    }
}

/* The sums of one step of k_search_range(). */
struct v_range_sums {
    wide l, l2, xl;
};

/* Replaces an infinite inverse, so that every level is 0, as in k_search.c. */
static inline vf v_usable(vf inverse)
{
    return v_select(v_equal(v_abs(inverse), v_set(INFINITY)), v_set(0), inverse);
}

static inline void v_sum_levels(struct v_value *values, int n, wide inverse, wide minimum, vf n_max,
                                struct v_range_sums *sums)
{
    wide usable;
    EACH_VECTOR(v)
    {
        usable[v] = v_usable(inverse[v]);
        sums->l[v] = sums->l2[v] = sums->xl[v] = v_set(0);
    }
    for (int i = 0; i < n; i++)
        EACH_VECTOR(v)
        {
            vf level = v_level(usable[v] * (values[i].x[v] - minimum[v]), v_set(0), n_max);
            vf weighted = values[i].weight[v] * level;
            values[i].level[v] = level;
            sums->l[v] += weighted;
            sums->l2[v] += weighted * level;
            sums->xl[v] += weighted * values[i].x[v];
        }
}

static inline void v_range_error(const struct v_value *values, int n, bool absolute, wide scale, wide minimum,
                                 wide error)
{
    EACH_VECTOR(v) error[v] = v_set(0);
    for (int i = 0; i < n; i++)
        EACH_VECTOR(v)
        {
            vf difference = scale[v] * values[i].level[v] + minimum[v] - values[i].x[v],
               weighed = difference * difference;
            if (absolute)
                weighed = v_abs(difference);
            error[v] += values[i].weight[v] * weighed;
        }
}

/* Like find_range() and fit_levels() of k_search.c. */
struct v_range {
    wide minimum, maximum, sum_w, sum_x;
};

static inline void v_find_range(const struct v_value *values, int n, struct v_range *range)
{
    EACH_VECTOR(v)
    {
        range->minimum[v] = range->maximum[v] = values[0].x[v];
        range->sum_w[v] = values[0].weight[v];
        range->sum_x[v] = values[0].weight[v] * values[0].x[v];
    }
    for (int i = 1; i < n; i++)
        EACH_VECTOR(v)
        {
            range->minimum[v] = v_min(values[i].x[v], range->minimum[v]);
            range->maximum[v] = v_max(values[i].x[v], range->maximum[v]);
            range->sum_w[v] += values[i].weight[v];
            range->sum_x[v] += values[i].weight[v] * values[i].x[v];
        }
    EACH_VECTOR(v)
    range->minimum[v] = v_select(v_less(v_set(0), range->minimum[v]), v_set(0), range->minimum[v]);
}

static inline void v_fit_levels(const struct v_range *range, const struct v_range_sums *sums, wide determinant,
                                wide scale, wide minimum)
{
    EACH_VECTOR(v)
    {
        determinant[v] = range->sum_w[v] * sums->l2[v] - sums->l[v] * sums->l[v];
        scale[v] = (range->sum_w[v] * sums->xl[v] - range->sum_x[v] * sums->l[v]) / determinant[v];
        minimum[v] = (sums->l2[v] * range->sum_x[v] - sums->l[v] * sums->xl[v]) / determinant[v];
        vm above = v_less(v_set(0), minimum[v]);
        minimum[v] = v_select(above, v_set(0), minimum[v]);
        scale[v] = v_select(above, sums->xl[v] / sums->l2[v], scale[v]);
    }
}

/* Like k_search_range(). */
static inline void v_search_range(struct v_value *values, const struct k_range_search *search, int n, bool absolute,
                                  struct v_found *found)
{
    wide minimum, inverse, scale, best;
    vf n_max = v_set((float)search->n_max);
    struct v_range range;
    struct v_range_sums sums;
    v_find_range(values, n, &range);
    EACH_VECTOR(v)
    {
        minimum[v] = found->offset[v] = range.minimum[v];
        inverse[v] = found->inverse[v] = n_max / (range.maximum[v] - minimum[v]);
        scale[v] = v_set(1) / inverse[v];
    }
    v_sum_levels(values, n, inverse, minimum, n_max, &sums);
    v_range_error(values, n, absolute, scale, minimum, best);
    for (int step = 0; step <= search->n_steps; step++) {
        wide determinant, tried_scale, tried_minimum, error;
        vf n_levels = v_set(search->r_min + search->r_delta * (float)step + (float)search->n_max);
        EACH_VECTOR(v) inverse[v] = n_levels / (range.maximum[v] - minimum[v]);
        v_sum_levels(values, n, inverse, minimum, n_max, &sums);
        v_fit_levels(&range, &sums, determinant, tried_scale, tried_minimum);
        v_range_error(values, n, absolute, tried_scale, tried_minimum, error);
        EACH_VECTOR(v)
        {
            vm better = v_both(v_less(v_set(0), determinant[v]), v_less(error[v], best[v]));
            best[v] = v_select(better, error[v], best[v]);
            scale[v] = v_select(better, tried_scale[v], scale[v]);
            found->inverse[v] = v_select(better, inverse[v], found->inverse[v]);
            found->offset[v] = v_select(better, minimum[v], found->offset[v]);
            minimum[v] = v_select(better, tried_minimum[v], minimum[v]);
        }
    }
    EACH_VECTOR(v)
    {
        vm flat = v_equal(range.maximum[v], range.minimum[v]);
        found->scale[v] = v_select(flat, v_set(0), scale[v]);
        found->minimum[v] = -v_select(flat, range.minimum[v], minimum[v]);
        found->inverse[v] = v_select(flat, v_set(NAN), v_usable(found->inverse[v]));
    }
}

/* What can occur among the values, in steps, of a step of k_search_symmetric(), and so has to be limited. */
enum v_limits { LIMIT_NONE, LIMIT_ABOVE, LIMIT_BOTH, LIMIT_ANYTHING };

/* The largest magnitude is n_max + tenths / 10, give or take a rounding error: it rounds to n_max - 1 up to -6 tenths,
 * and to n_max up to 4, so that no level is below -n_max. NaN and infinity occur in every step, but decide in the first
 * one: if there are any, no later one is better, whatever its levels. */
static inline enum v_limits v_limits_of(int step, int tenths)
{
    if (step == 0)
        return LIMIT_ANYTHING;
    return tenths > 4 ? LIMIT_BOTH : tenths > -6 ? LIMIT_ABOVE : LIMIT_NONE;
}

static inline vf v_symmetric_level(vf value, int n_max, enum v_limits limits)
{
#ifdef V_MOST_LOOKED_UP
    if (n_max <= V_MOST_LOOKED_UP && limits != LIMIT_ANYTHING)
        return v_look_up_level(value, n_max);
#endif
    if (limits >= LIMIT_BOTH)
        value = v_max(value, v_set((float)-n_max));
    if (limits >= LIMIT_ABOVE)
        value = v_min(value, v_set((float)(n_max - 1)));
    return v_round(value);
}

/* The sums of one step of k_search_symmetric(). */
static inline void v_sum_symmetric(enum v_limits limits, const struct v_value *values, int n, wide inverse, int n_max,
                                   wide sum_lx, wide sum_l2)
{
    EACH_VECTOR(v) sum_lx[v] = sum_l2[v] = v_set(0);
    for (int i = 0; i < n; i++)
        EACH_VECTOR(v)
        {
            vf level = v_symmetric_level(inverse[v] * values[i].x[v], n_max, limits);
            sum_lx[v] += values[i].weighted[v] * level;
            sum_l2[v] += values[i].weight[v] * level * level;
        }
}

/* One loop for each kind of limits, in which it is a constant. */
static inline void v_sum_symmetric_within(enum v_limits limits, const struct v_value *values, int n, wide inverse,
                                          int n_max, wide sum_lx, wide sum_l2)
{
    switch (limits) {
    case LIMIT_NONE:
        v_sum_symmetric(LIMIT_NONE, values, n, inverse, n_max, sum_lx, sum_l2);
        break;
    case LIMIT_ABOVE:
        v_sum_symmetric(LIMIT_ABOVE, values, n, inverse, n_max, sum_lx, sum_l2);
        break;
    case LIMIT_BOTH:
        v_sum_symmetric(LIMIT_BOTH, values, n, inverse, n_max, sum_lx, sum_l2);
        break;
    case LIMIT_ANYTHING:
        v_sum_symmetric(LIMIT_ANYTHING, values, n, inverse, n_max, sum_lx, sum_l2);
        break;
    }
}

/* Like k_search_symmetric() for sub-blocks of n, with their weights. */
static inline void v_search_symmetric(struct v_value *values, int n, int n_max, struct v_found *found)
{
    wide largest, best_scale, best;
    v_signed_largest(&values->x, n, sizeof *values / sizeof values->x, largest);
    for (int i = 0; i < n; i++)
        EACH_VECTOR(v) values[i].weighted[v] = values[i].weight[v] * values[i].x[v];
    EACH_VECTOR(v) best_scale[v] = best[v] = v_set(0);
    wide next, inverse, sum_lx, sum_l2;
    EACH_VECTOR(v) next[v] = v_set((float)-n_max) / largest[v];
    for (int step = 0; step <= 18; step++) {
        int tenths = step <= 9 ? step - 10 : step - 9, next_tenths = step < 9 ? step - 9 : step - 8;
        EACH_VECTOR(v)
        {
            inverse[v] = next[v]; /* divided a step ahead, so that the sums do not wait for it */
            next[v] = v_set(-((float)n_max + 0.1f * (float)next_tenths)) / largest[v];
        }
        v_sum_symmetric_within(v_limits_of(step, tenths), values, n, inverse, n_max, sum_lx, sum_l2);
        EACH_VECTOR(v)
        {
            vf scale = sum_lx[v] / sum_l2[v];
            if (step == 0) {
                best_scale[v] = v_select(v_equal(sum_l2[v], v_set(0)), v_set(0), scale);
                best[v] = best_scale[v] * sum_lx[v];
                found->inverse[v] = inverse[v];
                continue;
            }
            vm better = v_both(v_less(v_set(0), sum_l2[v]), v_less(best[v] * sum_l2[v], sum_lx[v] * sum_lx[v]));
            best_scale[v] = v_select(better, scale, best_scale[v]);
            best[v] = v_select(better, scale * sum_lx[v], best[v]);
            found->inverse[v] = v_select(better, inverse[v], found->inverse[v]);
        }
    }
    EACH_VECTOR(v)
    {
        vm negligible = v_less(v_abs(largest[v]), v_set(K_NEGLIGIBLE));
        found->scale[v] = v_select(negligible, v_set(0), best_scale[v]);
        found->inverse[v] = v_select(negligible, v_set(NAN), found->inverse[v]);
        found->minimum[v] = found->offset[v] = v_set(0);
    }
}

static inline void v_square_weights(struct v_value *values, int n)
{
    for (int i = 0; i < n; i++)
        EACH_VECTOR(v)
    values[i].weight[v] = values[i].x[v] * values[i].x[v];
}

static inline void v_magnitude_weights(struct v_value *values, int n, bool with_average)
{
    EACH_VECTOR(v)
    {
        vf squares = v_set(0), average = v_set(0);
        if (with_average) {
            for (int i = 0; i < n; i++)
                squares += values[i].x[v] * values[i].x[v];
            average = v_sqrt(squares / v_set((float)n));
        }
        for (int i = 0; i < n; i++)
            values[i].weight[v] = average + v_abs(values[i].x[v]);
    }
}

#include "quant/kernels/k_refined_simd.h"

/* Searches each kind with a constant number of values, so that the loops unroll. */
static void v_search(const struct k_format *format, const float *values, struct v_found *found)
{
    struct v_value loaded[32];
    load_lanes(values, format->sub_elements, &loaded->x, sizeof *loaded / sizeof loaded->x);
    switch (format->kind) {
    case K_RANGE_MAGNITUDE:
        v_magnitude_weights(loaded, 16, false);
        v_search_range(loaded, &format->range, 16, true, found);
        break;
    case K_RANGE_AVERAGE:
        v_magnitude_weights(loaded, 32, true);
        v_search_range(loaded, &format->range, 32, false, found);
        break;
    case K_SYMMETRIC:
        v_square_weights(loaded, 16);
        v_search_symmetric(loaded, 16, -format->low, found);
        break;
    case K_REFINED:
        break; /* not here, but in v_search_refined() */
    }
}

/* Like v_search(), with given weights, whose sums are *ret_sums. */
static void v_search_weighted(const struct k_format *format, const float *values, const float *weights,
                              struct v_found *found, wide sums)
{
    const struct k_range_search range = K_WEIGHTED_RANGE(format->high);
    struct v_value loaded[32];
    int n = format->sub_elements;
    load_lanes(values, n, &loaded->x, sizeof *loaded / sizeof loaded->x);
    load_lanes(weights, n, &loaded->weight, sizeof *loaded / sizeof loaded->weight);
    EACH_VECTOR(v) sums[v] = v_set(0);
    for (int i = 0; i < n; i++)
        EACH_VECTOR(v) sums[v] += loaded[i].weight[v];
    if (format->low < 0)
        v_search_symmetric(loaded, 16, -format->low, found);
    else if (n == 16)
        v_search_range(loaded, &range, 16, false, found);
    else
        v_search_range(loaded, &range, 32, false, found);
}

/* Keeps what was found for WIDTH sub-blocks, from `first` on. */
static void v_keep(struct found *found, int first, const struct v_found *some)
{
    memcpy(found->scales + first, some->scale, sizeof some->scale);
    memcpy(found->minimums + first, some->minimum, sizeof some->minimum);
    memcpy(found->inverses + first, some->inverse, sizeof some->inverse);
    memcpy(found->offsets + first, some->offset, sizeof some->offset);
}

/* Searches the sub-blocks of n blocks, which are whole vectors. */
static void search_stretch(const struct k_format *format, const float *values, int n_blocks, struct found *found)
{
    struct v_found some;
    int n = n_blocks * (K_ELEMENTS / format->sub_elements);
    if (format->kind == K_REFINED) {
        assert(format->low == -4 && format->high == 3);
        v_search_refined(values, n, found);
        return;
    }
    for (int first = 0; first < n; first += WIDTH) {
        v_search(format, values + first * format->sub_elements, &some);
        v_keep(found, first, &some);
    }
}

/* Computes the levels of block b under the stored scales; if one is 0, those of the search. */
static inline void v_requantize(const struct k_format *format, int n, const float *values, const struct found *found,
                                int b, uint8_t *levels)
{
    vf low = v_set((float)format->low), high = v_set((float)format->high);
    for (int j = b * (K_ELEMENTS / n); j < (b + 1) * (K_ELEMENTS / n); j++, values += n, levels += n) {
        if (found->scales[j] != 0)
            for (int i = 0; i < n; i += LANES) {
                vf level = (v_load(values + i) + v_set(found->minimums[j])) / v_set(found->scales[j]);
                v_store_bytes(v_limit(level, low, high), format->low, levels + i);
            }
        else if (isinf(found->inverses[j]))
            memcpy(levels, found->refined[j], sizeof found->refined[j]);
        else
            for (int i = 0; i < n; i += LANES) {
                vf level = v_set(found->inverses[j]) * (v_load(values + i) - v_set(found->offsets[j]));
                v_store_bytes(v_limit(level, low, high), format->low, levels + i);
            }
    }
}

/* Like weigh() of k_format.c, for several blocks, whose sums of squares are chains that run side by side. */
static void v_weights(const struct k_format *format, const float *values, const float *importance, int n_blocks,
                      float *weights)
{
    if (format->mean_factor == 0) {
        memcpy(weights, importance, (size_t)n_blocks * K_ELEMENTS * sizeof *weights);
        return;
    }
    for (int b = 0; b < n_blocks; b += WHOLE_BLOCKS) {
        const float *some = values + b * K_ELEMENTS;
        float sums[WHOLE_BLOCKS] = {0};
        for (int i = 0; i < K_ELEMENTS; i++)
            for (int j = 0; j < WHOLE_BLOCKS; j++)
                sums[j] += some[j * K_ELEMENTS + i] * some[j * K_ELEMENTS + i];
        for (int j = 0; j < WHOLE_BLOCKS; j++)
            importance_weights(some + j * K_ELEMENTS, importance + (b + j) * K_ELEMENTS,
                               format->mean_factor * sums[j] / K_ELEMENTS, K_ELEMENTS, weights + (b + j) * K_ELEMENTS);
    }
}

/* Like search_stretch(), by importance. Not inlined: its weights and what v_search_refined() holds would be on the
 * stack together. */
static __attribute__((noinline)) void search_weighted_stretch(const struct k_format *format, const float *values,
                                                              const float *importance, int n_blocks,
                                                              struct found *found)
{
    struct v_found some;
    float weights[STRETCH_BLOCKS * K_ELEMENTS];
    wide sums;
    int n = n_blocks * (K_ELEMENTS / format->sub_elements);
    v_weights(format, values, importance, n_blocks, weights);
    for (int first = 0; first < n; first += WIDTH) {
        int at = first * format->sub_elements;
        v_search_weighted(format, values + at, weights + at, &some, sums);
        v_keep(found, first, &some);
        memcpy(found->weights + first, sums, sizeof sums);
    }
}

/* Finds the scale of each lane's sixteen scales like k_search_symmetric(), or without weights, from the one of the
 * largest magnitude: NaN, which leaves the block to store_scales(), if that has no reciprocal or one is not finite. */
static inline void v_search_scales(struct v_value *scales, bool weighted, struct v_found *found)
{
    wide largest;
    if (weighted) {
        v_search_symmetric(scales, K_MOST_SUB_BLOCKS, K_MOST_SHARE, found);
        return;
    }
    v_signed_largest(&scales->x, K_MOST_SUB_BLOCKS, sizeof *scales / sizeof scales->x, largest);
    EACH_VECTOR(v)
    {
        vf zero = v_set(0);
        for (int i = 0; i < K_MOST_SUB_BLOCKS; i++)
            zero += v_set(0) * scales[i].x[v];
        found->inverse[v] = v_set(-K_MOST_SHARE) / largest[v];
        found->scale[v] = v_set(1) / (found->inverse[v] + zero * found->inverse[v]);
    }
}

/* Searches the scales of blocks of sixteen sub-blocks, one block a lane, and stores them as shares of the result. They
 * become what load_scales() would return. */
static void v_store_shares(const struct k_format *format, struct found *found, bool weighted, uint8_t *blocks,
                           int n_blocks)
{
    struct v_value loaded[K_MOST_SUB_BLOCKS];
    struct v_found some;
    float scales[WIDTH], inverses[WIDTH];
    uint8_t shares[K_MOST_SUB_BLOCKS];
    vf low = v_set(-K_MOST_SHARE), high = v_set(K_MOST_SHARE - 1);
    int n = n_blocks * K_MOST_SUB_BLOCKS;
    memset(found->scales + n, 0, sizeof found->scales - (size_t)n * sizeof(float));
    memset(found->weights + n, 0, sizeof found->weights - (size_t)n * sizeof(float));
    for (int b = 0; b < n_blocks; b++, blocks += format->block_bytes) {
        float *first = found->scales + b * K_MOST_SUB_BLOCKS;
        if (b % WIDTH == 0) {
            load_lanes(first, K_MOST_SUB_BLOCKS, &loaded->x, sizeof *loaded / sizeof loaded->x);
            if (weighted)
                load_lanes(found->weights + b * K_MOST_SUB_BLOCKS, K_MOST_SUB_BLOCKS, &loaded->weight,
                           sizeof *loaded / sizeof loaded->x);
            v_search_scales(loaded, weighted, &some);
            memcpy(scales, some.scale, sizeof scales);
            memcpy(inverses, some.inverse, sizeof inverses);
        }
        if (!weighted && isnan(scales[b % WIDTH])) {
            format->store_scales(first, found->minimums, blocks);
            format->load_scales(blocks, first, found->minimums);
            continue;
        }
        for (int i = 0; i < K_MOST_SUB_BLOCKS; i += LANES) {
            vf share = v_level(v_set(inverses[b % WIDTH]) * v_load(first + i), low, high);
            v_store_bytes(share, -K_MOST_SHARE, shares + i);
            v_store(first + i, share);
        }
        vf stored = v_set(format->store_shares(scales[b % WIDTH], shares, blocks));
        for (int i = 0; i < K_MOST_SUB_BLOCKS; i += LANES)
            v_store(first + i, stored * v_load(first + i));
    }
    memset(found->minimums, 0, (size_t)n * sizeof(float));
}

/* Stores the scales of block b; returns false if the block is zero bytes. */
static bool store_scales(const struct k_format *format, const struct found *found, bool weighted, int b, uint8_t *block)
{
    int first = b * (K_ELEMENTS / format->sub_elements);
    if (!weighted || format->store_weighted_scales == NULL)
        return format->store_scales(found->scales + first, found->minimums + first, block);
    format->store_weighted_scales(found->scales + first, found->minimums + first, found->weights + first, block);
    return true;
}

/* Encodes a stretch; `importance` may be NULL. */
static void encode_stretch(const struct k_format *format, const float *values, const float *importance, uint8_t *blocks,
                           int n_blocks)
{
    struct found found;
    uint8_t levels[K_ELEMENTS];
    bool zero[STRETCH_BLOCKS];
    int n = format->sub_elements, n_sub = K_ELEMENTS / n;
    if (importance != NULL)
        search_weighted_stretch(format, values, importance, n_blocks, &found);
    else
        search_stretch(format, values, n_blocks, &found);
    bool shares = format->store_shares != NULL;
    if (shares)
        v_store_shares(format, &found, importance != NULL, blocks, n_blocks);
    for (int b = 0; b < n_blocks; b++)
        zero[b] =
            !shares && !store_scales(format, &found, importance != NULL, b, blocks + (size_t)b * format->block_bytes);
    for (int b = 0; b < n_blocks; b++)
        if (!shares && !zero[b])
            format->load_scales(blocks + (size_t)b * format->block_bytes, found.scales + b * n_sub,
                                found.minimums + b * n_sub);
    for (int b = 0; b < n_blocks; b++, values += K_ELEMENTS, blocks += format->block_bytes) {
        if (zero[b]) {
            memset(blocks, 0, format->block_bytes);
            continue;
        }
        if (n == 16)
            v_requantize(format, 16, values, &found, b, levels);
        else
            v_requantize(format, 32, values, &found, b, levels);
        format->pack(levels, blocks);
    }
}

void K_NAME(k_encode)(const struct k_format *format, const float *values, const float *importance, uint8_t *blocks,
                      size_t n_blocks)
{
    enum { MOST_BLOCK_BYTES = 256 };
    size_t whole = n_blocks - n_blocks % WHOLE_BLOCKS, left = n_blocks % WHOLE_BLOCKS, n;
    for (size_t i = 0; i < whole; i += n) {
        n = whole - i < STRETCH_BLOCKS ? whole - i : STRETCH_BLOCKS;
        encode_stretch(format, values + i * K_ELEMENTS, importance != NULL ? importance + i * K_ELEMENTS : NULL,
                       blocks + i * format->block_bytes, (int)n);
    }
    if (left != 0) { /* the last ones, padded with zeros */
        float padded[WHOLE_BLOCKS * K_ELEMENTS] = {0}, padded_importance[WHOLE_BLOCKS * K_ELEMENTS] = {0};
        uint8_t encoded[WHOLE_BLOCKS * MOST_BLOCK_BYTES];
        memcpy(padded, values + whole * K_ELEMENTS, left * K_ELEMENTS * sizeof *values);
        if (importance != NULL)
            memcpy(padded_importance, importance + whole * K_ELEMENTS, left * K_ELEMENTS * sizeof *importance);
        encode_stretch(format, padded, importance != NULL ? padded_importance : NULL, encoded, WHOLE_BLOCKS);
        memcpy(blocks + whole * format->block_bytes, encoded, left * format->block_bytes);
    }
}
