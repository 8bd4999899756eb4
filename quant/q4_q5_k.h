/* What Q4_K and Q5_K do alike: eight sub-blocks of 32 with a 6-bit scale and a 6-bit minimum each, under F16 d and dmin. */
#pragma once

#include "quant/k_search.h"

enum { Q45_SUB_BLOCKS = 8, Q45_SUB_ELEMENTS = 32, Q45_D = 0, Q45_D_MIN = 2, Q45_SCALES = 4 };

/* Fills in d, dmin and the packed scales of a block, and the levels of its values. */
void q45_quantize(const struct k_range_search *search, const float *values, uint8_t *block, uint8_t levels[K_ELEMENTS]);

/* The scale and minimum of sub-block `index`, as values. */
void q45_scale(const uint8_t *block, int index, float *ret_scale, float *ret_minimum);
