/* What IQ1_S and IQ1_M share: groups of eight values of which each is -1, 0 or 1 times a scale, all of them moved by an eighth of
 * it up or down.
 *
 * Their searches sort the values of a sub-block: in that order its levels are a run of 0, then of 1, then of 2, and all ways to
 * divide it are tried. Source: quantize_row_iq1_s_impl and iq1_quant_block_m in ggml-quants.c of llama.cpp. */
#pragma once

#include "quant/iq.h"

#include <stdbool.h>

enum { IQ1_MOST_SUB_ELEMENTS = 32 };

#define IQ1_SHIFT 0.125f

/* What the levels stand for, moved up and moved down. */
extern const float iq1_up[3], iq1_down[3];

static inline void iq1_decode_point(const uint8_t *levels, float scale, float shift, float *values)
{
    for (int i = 0; i < IQ_GROUP; i++)
        values[i] = scale * ((float)levels[i] - 1 + shift);
}

/* The places of n values in ascending order of these, equal ones in their own: what glibc's qsort() makes of the reference's
 * comparison, and the result depends on it. */
void iq1_sort(const float *values, int n, uint8_t *order);

/* The point nearest to the levels of a group, which become its own; false where they were off the grid. `numbers` is what levels
 * stand for. */
bool iq1_snap(const struct grid_search *search, const float *values, const float *weights, const float *numbers, float scale,
              uint8_t *levels, uint16_t *ret_point);

static inline float largest_magnitude(const float *values, int n)
{
    float largest = 0;
    for (int i = 0; i < n; i++) {
        float magnitude = values[i] < 0 ? -values[i] : values[i];
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}
