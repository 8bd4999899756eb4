/* Q4_0, Q4_1, Q5_0 and Q5_1: 32 values of four or five bits each, and a scale.
 *
 * A block is F16 d; F16 m (the minimum) in Q4_1 and Q5_1; the fifth bits, qh[4], in Q5_0 and Q5_1; and qs[16]. A value
 * is d * level + m, or d * (level - n_levels / 2) without a minimum. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { Q45_M = 2, Q4_0_BYTES = 18, Q4_1_BYTES = 20, Q5_0_BYTES = 22, Q5_1_BYTES = 24 };

struct q45_format {
    size_t block_bytes;
    int n_levels; /* 16 or 32 */
    bool has_minimum;
    size_t qh, qs; /* offsets in a block; qh is 0 if levels have four bits */
};

static const struct q45_format q4_0_format = {Q4_0_BYTES, 16, false, 0, 2};
static const struct q45_format q4_1_format = {Q4_1_BYTES, 16, true, 0, 4};
static const struct q45_format q5_0_format = {Q5_0_BYTES, 32, false, 2, 6};
static const struct q45_format q5_1_format = {Q5_1_BYTES, 32, true, 4, 8};
