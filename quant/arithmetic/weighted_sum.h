/* Sums of BF16 numbers times weights, as torch adds them up: each number of the first term times its weight, the
 * others added by fused operations in F32, divided by the divisor, and rounded to BF16 at the end. One pass over the
 * terms, without F32 copies of them. All levels give the same results; NaN stays NaN, with any sign and payload. */
#pragma once

#include "quant/blocks/dtype.h"

struct weighted_terms {
    const unsigned char *const *numbers; /* the BF16 numbers of each term, at any alignment */
    const float *weights;
    size_t n; /* at least 1 */
    float divisor;
};

/* Computes numbers [first, first + count) of the sum into `out`. */
typedef void weighted_sum_function(const struct weighted_terms *terms, size_t first, size_t count, unsigned char *out);
weighted_sum_function weighted_sum_portable, weighted_sum_neon,
    weighted_sum_avx2; /* for processors of their level only */

/* Returns the best of them for a level. */
weighted_sum_function *weighted_sum_at(enum cpu_level level);
