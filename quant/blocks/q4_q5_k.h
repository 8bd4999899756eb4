/* Shared by Q4_K and Q5_K: eight sub-blocks of 32 with a 6-bit scale and a 6-bit minimum each, packed in 12 bytes
 * after F16 d and dmin. */
#pragma once

#include "quant/blocks/k_format.h"

enum { Q45_SUB_BLOCKS = 8, Q45_D = 0, Q45_D_MIN = 2, Q45_SCALES = 4 };

bool q45_store_scales(const float *scales, const float *minimums, uint8_t *block);
void q45_store_weighted_scales(const float *scales, const float *minimums, const float *weights, uint8_t *block);
void q45_load_scales(const uint8_t *block, float *ret_scales, float *ret_minimums);
