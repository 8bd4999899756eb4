/* Shared by the K formats: the searches for the scale of a sub-block, and packing.
 *
 * The K formats are super-blocks of 256 values in sub-blocks of 16 or 32, each with a small integer scale (and minimum)
 * of its own under one F16 scale. Each search tries a few scales and keeps the one with the least weighted error; its
 * sums run in index order in F32, because another order gives other bits.
 *
 * Source: ggml-quants.c of llama.cpp (make_qx_quants, make_q3_quants, make_qkx2_quants, make_qkx3_quants,
 * make_qp_quants). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { K_ELEMENTS = 256 };

/* Below this largest magnitude a sub-block counts as zero. */
#define K_NEGLIGIBLE 1e-15f

/* Adding and subtracting this rounds a number of at most 22 bits to the nearest integer, ties to even. */
#define K_ROUND 12582912.f

/* Returns the level nearest to `value` within [low, high]; NaN is `low`. */
static inline float k_level(float value, float low, float high)
{
    value = value > low ? value : low;
    value = value < high ? value : high;
    return value + K_ROUND - K_ROUND;
}

/* Rounds |value| <= 4194303 by K_ROUND like the reference, from the bits of the sum. Larger values give a defined but
 * meaningless result, which Q3_K's search may meet. */
static inline int nearest_int(float value)
{
    float shifted = value + K_ROUND;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return (bits & 0x007fffff) - 0x00400000;
}

static inline int clamp_int(int value, int low, int high)
{
    int capped = value > high ? high : value;
    return capped < low ? low : capped;
}

/* Returns a symmetric scale for levels -n_max .. n_max - 1, stored plus n_max. */
float k_search_symmetric(int n, int n_max, const float *values, const float *weights, uint8_t *levels);

/* Like k_search_symmetric(), for Q3_K, with weights x * x: refined level by level, in up to five passes. */
float k_search_refined(int n, int n_max, const float *values, uint8_t *levels);

/* Parameters of a search for a scale and a minimum (>= 0, to be subtracted) for levels 0 .. n_max, which tries steps 0
 * .. n_steps of r_min + r_delta * step. With `absolute`, it minimizes absolute errors, else squares. */
struct k_range_search {
    int n_max, n_steps;
    float r_min, r_delta;
    bool absolute;
};
#define K_WEIGHTED_RANGE(n_max)                                                                                        \
    {                                                                                                                  \
        n_max, 36, -0.9f, 0.05f, false                                                                                 \
    } /* the reference's tries with importance */
float k_search_range(const struct k_range_search *search, int n, const float *values, const float *weights,
                     uint8_t *levels, float *ret_minimum);

/* Returns a scale for levels 0 .. n_max of the scales or minimums of sub-blocks, refined in up to five passes. A level
 * is a byte: a negative value may get a level above n_max, 256 too large. */
float k_search_positive(int n, int n_max, const float *values, const float *weights, uint8_t *levels);
