#include "quant/blocks/k_search.h"

#include "quant/blocks/weights.h"

float k_search_symmetric(int n, int n_max, const float *values, const float *weights, uint8_t *levels)
{
    float largest = largest_by_magnitude(values, n);
    if (fabsf(largest) < K_NEGLIGIBLE) {
        memset(levels, 0, (size_t)n);
        return 0;
    }
    float best_scale = 0, best = 0, low = (float)-n_max, high = (float)(n_max - 1);
    for (int step = 0; step <= 18; step++) {
        /* The plain scale first, then -9 .. 9 tenths of a level beside it. */
        int tenths = step <= 9 ? step - 10 : step - 9;
        float inverse = step == 0 ? -(float)n_max / largest : -((float)n_max + 0.1f * (float)tenths) / largest;
        float sum_lx = 0, sum_l2 = 0;
        for (int i = 0; i < n; i++) {
            float level = k_level(inverse * values[i], low, high);
            sum_lx += weights[i] * values[i] * level;
            sum_l2 += weights[i] * level * level;
        }
        if (step != 0 && !(sum_l2 > 0 && sum_lx * sum_lx > best * sum_l2))
            continue;
        best_scale = sum_l2 != 0 ? sum_lx / sum_l2 : 0;
        best = best_scale * sum_lx;
        for (int i = 0; i < n; i++)
            levels[i] = (uint8_t)(k_level(inverse * values[i], low, high) - low);
    }
    return best_scale;
}

float k_search_refined(int n, int n_max, const float *values, uint8_t *levels)
{
    float largest = largest_by_magnitude(values, n);
    if (fabsf(largest) < K_NEGLIGIBLE) {
        memset(levels, 0, (size_t)n);
        return 0;
    }
    int kept[32];
    float inverse = -(float)n_max / largest, sum_lx = 0, sum_l2 = 0;
    for (int i = 0; i < n; i++) {
        int level = (int)k_level(inverse * values[i], (float)-n_max, (float)(n_max - 1));
        float weight = values[i] * values[i];
        kept[i] = level;
        sum_lx += weight * values[i] * (float)level;
        sum_l2 += weight * (float)level * (float)level;
    }
    bool changed = true;
    for (int pass = 0; pass < 5 && changed; pass++) {
        changed = false;
        for (int i = 0; i < n; i++) {
            float weight = values[i] * values[i];
            float without_lx = sum_lx - weight * values[i] * (float)kept[i];
            if (!(without_lx > 0))
                continue;
            float without_l2 = sum_l2 - weight * (float)kept[i] * (float)kept[i];
            int level = clamp_int(nearest_int(values[i] * without_l2 / without_lx), -n_max, n_max - 1);
            if (level == kept[i])
                continue;
            without_lx += weight * values[i] * (float)level;
            without_l2 += weight * (float)level * (float)level;
            if (without_l2 > 0 && without_lx * without_lx * sum_l2 > sum_lx * sum_lx * without_l2) {
                kept[i] = level;
                sum_lx = without_lx;
                sum_l2 = without_l2;
                changed = true;
            }
        }
    }
    for (int i = 0; i < n; i++)
        levels[i] = (uint8_t)(kept[i] + n_max);
    return sum_l2 > 0 ? sum_lx / sum_l2 : 0;
}

struct range_sums {
    float l, l2, xl;
};

static struct range_sums sum_levels(int n, const float *values, const float *weights, const float *levels)
{
    struct range_sums sums = {0};
    for (int i = 0; i < n; i++) {
        float weighted = weights[i] * levels[i];
        sums.l += weighted;
        sums.l2 += weighted * levels[i];
        sums.xl += weighted * values[i];
    }
    return sums;
}

static float range_error(const struct k_range_search *search, int n, const float *values, const float *weights,
                         const float *levels, float scale, float minimum)
{
    float error = 0;
    for (int i = 0; i < n; i++) {
        float difference = scale * levels[i] + minimum - values[i];
        difference = search->absolute ? fabsf(difference) : difference * difference;
        error += weights[i] * difference;
    }
    return error;
}

/* Finds the levels. An infinite inverse, from a range of subnormal numbers, makes every level 0, as the reference's
 * rounding does. */
static void find_levels(int n, const float *values, float inverse, float minimum, float n_max, float *levels)
{
    inverse = isinf(inverse) ? 0 : inverse;
    for (int i = 0; i < n; i++)
        levels[i] = k_level(inverse * (values[i] - minimum), 0, n_max);
}

/* The range of the values, with 0 as the highest minimum, and their sums. */
struct range {
    float minimum, maximum, sum_w, sum_x;
};

static struct range find_range(int n, const float *values, const float *weights)
{
    struct range range = {values[0], values[0], weights[0], weights[0] * values[0]};
    for (int i = 1; i < n; i++) {
        range.minimum = values[i] < range.minimum ? values[i] : range.minimum;
        range.maximum = values[i] > range.maximum ? values[i] : range.maximum;
        range.sum_w += weights[i];
        range.sum_x += weights[i] * values[i];
    }
    range.minimum = range.minimum > 0 ? 0 : range.minimum;
    return range;
}

/* Fits a scale and a minimum, at most 0, to the levels; returns false if nothing fits. */
static bool fit_levels(const struct range *range, struct range_sums sums, float *ret_scale, float *ret_minimum)
{
    float determinant = range->sum_w * sums.l2 - sums.l * sums.l;
    if (!(determinant > 0))
        return false;
    *ret_scale = (range->sum_w * sums.xl - range->sum_x * sums.l) / determinant;
    *ret_minimum = (sums.l2 * range->sum_x - sums.l * sums.xl) / determinant;
    if (*ret_minimum > 0) {
        *ret_minimum = 0;
        *ret_scale = sums.xl / sums.l2;
    }
    return true;
}

float k_search_range(const struct k_range_search *search, int n, const float *values, const float *weights,
                     uint8_t *levels, float *ret_minimum)
{
    float best_levels[32], tried[32], n_max = (float)search->n_max;
    const struct range range = find_range(n, values, weights);
    float minimum = range.minimum;
    if (range.maximum == minimum) {
        memset(levels, 0, (size_t)n);
        *ret_minimum = -minimum;
        return 0;
    }
    float inverse = n_max / (range.maximum - minimum), scale = 1 / inverse;
    find_levels(n, values, inverse, minimum, n_max, best_levels);
    float best = range_error(search, n, values, weights, best_levels, scale, minimum);
    for (int step = 0; step <= search->n_steps; step++) {
        inverse = (search->r_min + search->r_delta * (float)step + n_max) / (range.maximum - minimum);
        find_levels(n, values, inverse, minimum, n_max, tried);
        float tried_scale, tried_minimum;
        if (!fit_levels(&range, sum_levels(n, values, weights, tried), &tried_scale, &tried_minimum))
            continue;
        float error = range_error(search, n, values, weights, tried, tried_scale, tried_minimum);
        if (!(error < best))
            continue;
        memcpy(best_levels, tried, sizeof best_levels);
        best = error;
        scale = tried_scale;
        minimum = tried_minimum; /* later steps start from it */
    }
    for (int i = 0; i < n; i++)
        levels[i] = (uint8_t)best_levels[i];
    *ret_minimum = -minimum;
    return scale;
}

static float positive_error(int n, const float *values, const float *weights, const int *levels, float scale)
{
    float error = 0;
    for (int i = 0; i < n; i++) {
        float difference = values[i] - scale * (float)levels[i];
        error += weights[i] * difference * difference;
    }
    return error;
}

/* Returns the inverse scale with the least error: the plain one, or one up to four tenths of a level beside it. */
static float positive_inverse(int n, int n_max, const float *values, const float *weights, float largest)
{
    int tried[32];
    float inverse = (float)n_max / largest;
    for (int i = 0; i < n; i++)
        tried[i] = (uint8_t)nearest_int(inverse * values[i]);
    float best = positive_error(n, values, weights, tried, 1 / inverse);
    for (int tenths = -4; tenths <= 4; tenths++) {
        if (tenths == 0)
            continue;
        float other = (0.1f * (float)tenths + (float)n_max) / largest;
        for (int i = 0; i < n; i++) {
            int level = nearest_int(other * values[i]);
            tried[i] = level < n_max ? level : n_max;
        }
        float error = positive_error(n, values, weights, tried, 1 / other);
        if (error < best) {
            best = error;
            inverse = other;
        }
    }
    return inverse;
}

static bool refine_positive(int n, int n_max, const float *values, const float *weights, uint8_t *levels, float *sum_lx,
                            float *sum_l2)
{
    bool changed = false;
    for (int i = 0; i < n; i++) {
        float kept = (float)levels[i];
        float lx = *sum_lx - weights[i] * values[i] * kept, l2 = *sum_l2 - weights[i] * kept * kept;
        if (!(lx > 0 && l2 > 0))
            continue;
        int level = nearest_int(values[i] * l2 / lx);
        level = level < n_max ? level : n_max;
        if (level == levels[i])
            continue;
        lx += weights[i] * values[i] * (float)level;
        l2 += weights[i] * (float)level * (float)level;
        if (lx * lx * *sum_l2 > *sum_lx * *sum_lx * l2) {
            levels[i] = (uint8_t)level;
            *sum_lx = lx;
            *sum_l2 = l2;
            changed = true;
        }
    }
    return changed;
}

float k_search_positive(int n, int n_max, const float *values, const float *weights, uint8_t *levels)
{
    float largest = 0, sum_lx = 0, sum_l2 = 0;
    for (int i = 0; i < n; i++)
        largest = values[i] > largest ? values[i] : largest;
    if (largest < K_NEGLIGIBLE) {
        memset(levels, 0, (size_t)n);
        return 0;
    }
    float inverse = positive_inverse(n, n_max, values, weights, largest);
    for (int i = 0; i < n; i++) {
        int level = nearest_int(inverse * values[i]);
        level = level < n_max ? level : n_max;
        levels[i] = (uint8_t)level;
        sum_lx += weights[i] * values[i] * (float)level;
        sum_l2 += weights[i] * (float)level * (float)level;
    }
    for (int pass = 0; pass < 5; pass++)
        if (!refine_positive(n, n_max, values, weights, levels, &sum_lx, &sum_l2))
            break;
    return sum_l2 > 0 ? sum_lx / sum_l2 : 0;
}
