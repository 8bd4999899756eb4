/* The largest value of a search, and the weight of each value's error from the importance of its column.
 *
 * The importance is the mean square of a column's activations, measured over some text; the root makes large values
 * count more than small ones, within limits. Source: the quantize_row_*_impl functions in ggml-quants.c of
 * llama.cpp. */
#pragma once

#include <math.h>

/* Returns the value of the largest magnitude, the first of equals, with its sign. */
static inline float largest_by_magnitude(const float *values, int n)
{
    float largest = 0;
    for (int i = 0; i < n; i++)
        largest = fabsf(values[i]) > fabsf(largest) ? values[i] : largest;
    return largest;
}

static inline float sum_of_squares(const float *values, int n)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += values[i] * values[i];
    return sum;
}

/* Sets the weights. `mean_square` is that of the row or block around the values, or a multiple of it. */
static inline void importance_weights(const float *values, const float *importance, float mean_square, int n,
                                      float *weights)
{
    for (int i = 0; i < n; i++)
        weights[i] = importance[i] * sqrtf(mean_square + values[i] * values[i]);
}
