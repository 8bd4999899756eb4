/* The K formats with LANES sub-blocks side by side, one a lane: included by k_avx2.c and k_avx512.c, which define LANES and
 * K_NAME(name), what its functions are called there.
 *
 * Every lane does what k_search.c does for its sub-block, in the same order of operations, so the bits are the same;
 * what is a branch there is a mask here. The sub-blocks of neighbouring blocks follow each other in memory, so a vector may span
 * two blocks. */
#include "quant/k_format.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

typedef float vf __attribute__((vector_size(LANES * 4), aligned(LANES * 4)));
typedef int32_t vi __attribute__((vector_size(LANES * 4), aligned(LANES * 4)));

static inline vf v_set(float value)
{
    return value - (vf){0};
}

static inline vf v_select(vi mask, vf yes, vf no)
{
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

static inline vf v_abs(vf value)
{
    return (vf)((vi)value & 0x7fffffff);
}

static inline vi v_clamp(vi value, int low, int high)
{
    vi low_v = low - (vi){0}, high_v = high - (vi){0}, below = value<low_v, above = value> high_v;
    value = (below & low_v) | (~below & value);
    return (above & high_v) | (~above & value);
}

static inline vf v_float(vi value)
{
    return __builtin_convertvector(value, vf);
}

/* nearest_int() of every lane. */
static inline vi v_nearest(vf value)
{
    return ((vi)(value + v_set(12582912.f)) & 0x007fffff) - 0x00400000;
}

static inline vf v_sqrt(vf value)
{
    for (int i = 0; i < LANES; i++)
        value[i] = sqrtf(value[i]);
    return value;
}

/* Value i of each of LANES sub-blocks of n values that follow each other. */
static inline void load_lanes(const float *values, int n, vf *out)
{
    float *flat = (float *)out;
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < n; i++)
            flat[i * LANES + lane] = values[lane * n + i];
}

static inline void store_levels(const vi *levels, int n, uint8_t *out)
{
    const int32_t *flat = (const int32_t *)levels;
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < n; i++)
            out[lane * n + i] = (uint8_t)flat[i * LANES + lane];
}

/* The sums of one step of k_search_range(). */
struct v_range_sums {
    vf l, l2, xl;
};

static inline struct v_range_sums v_sum_levels(int n, const vf *x, const vf *w, vf inverse, vf minimum, int n_max, vf *levels)
{
    struct v_range_sums sums = {v_set(0), v_set(0), v_set(0)};
    for (int i = 0; i < n; i++) {
        vf level = v_float(v_clamp(v_nearest(inverse * (x[i] - minimum)), 0, n_max)), weighted = w[i] * level;
        levels[i] = level;
        sums.l += weighted;
        sums.l2 += weighted * level;
        sums.xl += weighted * x[i];
    }
    return sums;
}

static inline vf v_range_error(bool absolute, int n, const vf *x, const vf *w, const vf *levels, vf scale, vf minimum)
{
    vf error = v_set(0);
    for (int i = 0; i < n; i++) {
        vf difference = scale * levels[i] + minimum - x[i];
        error += w[i] * (absolute ? v_abs(difference) : difference * difference);
    }
    return error;
}

/* k_search_range(); the levels are kept as numbers. */
static inline void v_search_range(const struct k_range_search *search, int n, const vf *x, const vf *w, vf *kept, vf *ret_scale,
                                  vf *ret_minimum)
{
    vf tried[32];
    vf minimum = x[0], maximum = x[0], sum_w = w[0], sum_x = w[0] * x[0];
    for (int i = 1; i < n; i++) {
        minimum = v_select(x[i] < minimum, x[i], minimum);
        maximum = v_select(x[i] > maximum, x[i], maximum);
        sum_w += w[i];
        sum_x += w[i] * x[i];
    }
    minimum = v_select(minimum > v_set(0), v_set(0), minimum);
    vi flat = maximum == minimum;
    vf n_max = v_set((float)search->n_max), inverse = n_max / (maximum - minimum), scale = v_set(1) / inverse;
    vf flat_minimum = minimum;
    v_sum_levels(n, x, w, inverse, minimum, search->n_max, kept);
    vf best = v_range_error(search->absolute, n, x, w, kept, scale, minimum);
    for (int step = 0; step <= search->n_steps; step++) {
        inverse = v_set(search->r_min + search->r_delta * (float)step + (float)search->n_max) / (maximum - minimum);
        struct v_range_sums sums = v_sum_levels(n, x, w, inverse, minimum, search->n_max, tried);
        vf determinant = sum_w * sums.l2 - sums.l * sums.l;
        vf tried_scale = (sum_w * sums.xl - sum_x * sums.l) / determinant;
        vf tried_minimum = (sums.l2 * sum_x - sums.l * sums.xl) / determinant;
        vi above = tried_minimum > v_set(0);
        tried_minimum = v_select(above, v_set(0), tried_minimum);
        tried_scale = v_select(above, sums.xl / sums.l2, tried_scale);
        vf error = v_range_error(search->absolute, n, x, w, tried, tried_scale, tried_minimum);
        vi better = (determinant > v_set(0)) & (error < best);
        best = v_select(better, error, best);
        scale = v_select(better, tried_scale, scale);
        minimum = v_select(better, tried_minimum, minimum);
        for (int i = 0; i < n; i++)
            kept[i] = v_select(better, tried[i], kept[i]);
    }
    for (int i = 0; i < n; i++)
        kept[i] = v_select(flat, v_set(0), kept[i]);
    *ret_scale = v_select(flat, v_set(0), scale);
    *ret_minimum = -v_select(flat, flat_minimum, minimum);
}

static inline vf v_signed_largest(int n, const vf *x)
{
    vf largest = v_set(0), magnitude = v_set(0);
    for (int i = 0; i < n; i++) {
        vi larger = v_abs(x[i]) > magnitude;
        magnitude = v_select(larger, v_abs(x[i]), magnitude);
        largest = v_select(larger, x[i], largest);
    }
    return largest;
}

/* k_search_symmetric(). */
static inline vf v_search_symmetric(int n, int n_max, const vf *x, vi *levels)
{
    vf largest = v_signed_largest(n, x), best_scale = v_set(0), best = v_set(0), best_inverse = v_set(0);
    vi negligible = v_abs(largest) < v_set(K_NEGLIGIBLE);
    for (int step = 0; step <= 18; step++) {
        int tenths = step <= 9 ? step - 10 : step - 9;
        vf inverse = v_set(step == 0 ? -(float)n_max : -((float)n_max + 0.1f * (float)tenths)) / largest;
        vf sum_lx = v_set(0), sum_l2 = v_set(0);
        for (int i = 0; i < n; i++) {
            vf level = v_float(v_clamp(v_nearest(inverse * x[i]), -n_max, n_max - 1)), weight = x[i] * x[i];
            sum_lx += weight * x[i] * level;
            sum_l2 += weight * level * level;
        }
        vi better = (sum_l2 > v_set(0)) & (sum_lx * sum_lx > best * sum_l2);
        vf scale = sum_lx / sum_l2;
        if (step == 0) {
            better = ~(vi){0};
            scale = v_select(sum_l2 == v_set(0), v_set(0), scale);
        }
        best_scale = v_select(better, scale, best_scale);
        best = v_select(better, scale * sum_lx, best);
        best_inverse = v_select(better, inverse, best_inverse);
    }
    for (int i = 0; i < n; i++)
        levels[i] = (v_clamp(v_nearest(best_inverse * x[i]), -n_max, n_max - 1) + n_max) & ~negligible;
    return v_select(negligible, v_set(0), best_scale);
}

/* k_search_refined(); lanes that no longer change wait for the others. */
static inline vf v_search_refined(int n, int n_max, const vf *x, vi *levels)
{
    vf largest = v_signed_largest(n, x), inverse = v_set(-(float)n_max) / largest, sum_lx = v_set(0), sum_l2 = v_set(0);
    vi negligible = v_abs(largest) < v_set(K_NEGLIGIBLE), going = ~negligible;
    vf kept[16];
    for (int i = 0; i < n; i++) {
        vf level = v_float(v_clamp(v_nearest(inverse * x[i]), -n_max, n_max - 1)), weight = x[i] * x[i];
        kept[i] = level;
        sum_lx += weight * x[i] * level;
        sum_l2 += weight * level * level;
    }
    for (int pass = 0; pass < 5; pass++) {
        vi changed = {0};
        for (int i = 0; i < n; i++) {
            vf weight = x[i] * x[i], without_lx = sum_lx - weight * x[i] * kept[i];
            vf without_l2 = sum_l2 - weight * kept[i] * kept[i];
            vf level = v_float(v_clamp(v_nearest(x[i] * without_l2 / without_lx), -n_max, n_max - 1));
            vi accept = going & (without_lx > v_set(0)) & (level != kept[i]);
            without_lx += weight * x[i] * level;
            without_l2 += weight * level * level;
            accept &= (without_l2 > v_set(0)) & (without_lx * without_lx * sum_l2 > sum_lx * sum_lx * without_l2);
            kept[i] = v_select(accept, level, kept[i]);
            sum_lx = v_select(accept, without_lx, sum_lx);
            sum_l2 = v_select(accept, without_l2, sum_l2);
            changed |= accept;
        }
        going &= changed;
    }
    for (int i = 0; i < n; i++)
        levels[i] = (__builtin_convertvector(kept[i], vi) + n_max) & ~negligible;
    return v_select(negligible | ~(sum_l2 > v_set(0)), v_set(0), sum_lx / sum_l2);
}

/* Levels under the scales that were stored; where a scale is 0 those of the search stay. */
static inline void v_requantize(int n, const vf *x, vf scale, vf minimum, int low, int high, vi *levels)
{
    vi keep = scale == v_set(0);
    for (int i = 0; i < n; i++) {
        vi level = v_clamp(v_nearest((x[i] + minimum) / scale), low, high) - low;
        levels[i] = (keep & levels[i]) | (~keep & level);
    }
}

/* LANES sub-blocks from one of sub-block number `first` of a stretch of blocks on: searches their scales, keeps the vectors. */
struct v_group {
    vf x[32];
    vi levels[32];
    vf scale, minimum;
};

static inline void v_weights(int n, const vf *x, bool with_average, vf *weights)
{
    vf squares = v_set(0), average = v_set(0);
    if (with_average) {
        for (int i = 0; i < n; i++)
            squares += x[i] * x[i];
        average = v_sqrt(squares / v_set((float)n));
    }
    for (int i = 0; i < n; i++)
        weights[i] = average + v_abs(x[i]);
}

static inline void v_search_range_group(const struct k_format *format, int n, bool with_average, struct v_group *group)
{
    vf weights[32], kept[32];
    v_weights(n, group->x, with_average, weights);
    v_search_range(&format->range, n, group->x, weights, kept, &group->scale, &group->minimum);
    for (int i = 0; i < n; i++)
        group->levels[i] = __builtin_convertvector(kept[i], vi);
}

/* Each kind with its number of values as a constant, so that the loops unroll. */
static void v_search(const struct k_format *format, const float *values, struct v_group *group)
{
    load_lanes(values, format->sub_elements, group->x);
    group->minimum = v_set(0);
    switch (format->kind) {
    case K_RANGE_MAGNITUDE:
        v_search_range_group(format, 16, false, group);
        break;
    case K_RANGE_AVERAGE:
        v_search_range_group(format, 32, true, group);
        break;
    case K_REFINED:
        group->scale = v_search_refined(16, -format->low, group->x, group->levels);
        break;
    case K_SYMMETRIC:
        group->scale = v_search_symmetric(16, -format->low, group->x, group->levels);
        break;
    }
}

enum { STRETCH_BLOCKS = 2, MOST_GROUPS = STRETCH_BLOCKS * K_MOST_SUB_BLOCKS / LANES };

/* STRETCH_BLOCKS blocks: as many as fill whole vectors whatever the format. */
static void v_encode_stretch(const struct k_format *format, const float *values, uint8_t *blocks)
{
    struct v_group groups[MOST_GROUPS];
    float scales[STRETCH_BLOCKS * K_MOST_SUB_BLOCKS], minimums[STRETCH_BLOCKS * K_MOST_SUB_BLOCKS];
    uint8_t levels[STRETCH_BLOCKS * K_ELEMENTS];
    bool zero[STRETCH_BLOCKS];
    int n = format->sub_elements, n_sub = K_ELEMENTS / n, n_groups = STRETCH_BLOCKS * n_sub / LANES;
    for (int g = 0; g < n_groups; g++) {
        v_search(format, values + g * LANES * n, &groups[g]);
        memcpy(scales + g * LANES, &groups[g].scale, sizeof groups[g].scale);
        memcpy(minimums + g * LANES, &groups[g].minimum, sizeof groups[g].minimum);
    }
    for (int b = 0; b < STRETCH_BLOCKS; b++) {
        uint8_t *block = blocks + (size_t)b * format->block_bytes;
        zero[b] = !format->store_scales(scales + b * n_sub, minimums + b * n_sub, block);
        if (zero[b])
            memset(block, 0, format->block_bytes);
        for (int j = 0; j < n_sub; j++)
            format->load_scale(block, j, &scales[b * n_sub + j], &minimums[b * n_sub + j]);
    }
    for (int g = 0; g < n_groups; g++) {
        memcpy(&groups[g].scale, scales + g * LANES, sizeof groups[g].scale);
        memcpy(&groups[g].minimum, minimums + g * LANES, sizeof groups[g].minimum);
        v_requantize(n, groups[g].x, groups[g].scale, groups[g].minimum, format->low, format->high, groups[g].levels);
        store_levels(groups[g].levels, n, levels + g * LANES * n);
    }
    for (int b = 0; b < STRETCH_BLOCKS; b++) {
        uint8_t *block = blocks + (size_t)b * format->block_bytes;
        if (!zero[b])
            format->pack(levels + b * K_ELEMENTS, block);
    }
}

void K_NAME(k_encode)(const struct k_format *format, const float *values, uint8_t *blocks, size_t n_blocks)
{
    size_t i = 0;
    for (; i + STRETCH_BLOCKS <= n_blocks; i += STRETCH_BLOCKS)
        v_encode_stretch(format, values + i * K_ELEMENTS, blocks + i * format->block_bytes);
    if (i < n_blocks)
        k_encode(format, values + i * K_ELEMENTS, blocks + i * format->block_bytes, n_blocks - i);
}
