/* What IQ4_NL and IQ4_XS share: sixteen levels that are not evenly spaced, and the search for a block's scale.
 * Source: quantize_row_iq4_nl_impl in ggml-quants.c of llama.cpp, with seven tries and the weight x * x. */
#pragma once

#include <stdint.h>

enum { IQ4_ELEMENTS = 32, IQ4_TRIES = 7 };

extern const int8_t iq4_levels[16];

/* The index of the level nearest to `value`; the upper of two that are equally near. */
int iq4_nearest(float value);

/* The best scale of 32 values: 0 where they are negligible. */
float iq4_search(const float *values);
