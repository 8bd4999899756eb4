/* How far blocks of unknown origin follow from weights: whether their codes are the nearest for their scales, and their
 * scales are such as a search gives.
 *
 * A code is `other` if another code is nearer to the weight, beyond what rounding explains: for Q2_K to Q6_K one part
 * in 2^15 of a step; for the others the step that the scale makes when it is rounded to F16. A search by an
 * importance matrix rounds Q4_0, Q4_1, Q5_0 and Q5_1 by another scale than it stores, and so leaves about one code of
 * 100 at the second nearest level: these codes are `loose`, and at most one of LOOSE_SHARE may be. Codes under a scale
 * of 0 have no effect, and any is right.
 *
 * The scale of a sub-block is compared with the one that spreads the levels over its values: the span of the values
 * over the number of steps. Searches, with a matrix or not, stay within limits of the type; a scale beyond is
 * `outside`. Where scales are small integers times an F16, half such an integer is allowed for. Only an extreme matrix,
 * with columns that hardly count, gives scales outside, and then gives them to more than one sub-block in
 * OUTSIDE_SHARE. */
#pragma once

#include "quant/blocks/codes.h"

enum { LOOSE_SHARE = 20, OUTSIDE_SHARE = 1000 };

struct code_counts {
    uint64_t n_codes, n_other, n_loose;
    uint64_t n_scales, n_outside;
    uint64_t first_other, first_outside; /* numbers of blocks; UINT64_MAX: none */
    double least, most; /* scales, divided by the one that spreads the levels; of sub-blocks with different values */
};

struct code_counts code_counts_none(void);

/* Adds the counts of `n_blocks` blocks, the first of which has the number `first`. The dtype has codes_of(). */
void codes_check(const struct dtype *dtype, const float *values, const void *blocks, uint64_t first, size_t n_blocks,
                 struct code_counts *counts);

/* Adds other counts to a sum. */
void code_counts_add(struct code_counts *sum, const struct code_counts *counts);

/* Reports whether all blocks follow from the weights: no code is other, few are loose, and no scale is outside unless
 * many are. */
bool codes_are_nearest(const struct code_counts *counts);
