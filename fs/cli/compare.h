/* Values side by side: for `wfs diff` and `wfs verify`.
 *
 * Two views of one shape are first compared as they are stored, where they have one dtype, and those that differ as
 * F32, by all cores. Elements that are the same bits or equal numbers do not differ; where just one of two is a NaN, or
 * one is infinite, the difference is infinite. */
#pragma once

#include "fs/cli/progress.h"
#include "quant/view.h"

struct difference {
    bool same_bytes;     /* in one dtype */
    bool has_values;     /* both can be read as F32; otherwise nothing is known but same_bytes */
    uint64_t n_elements; /* of each view */
    uint64_t n_different;
    double largest;      /* of |b - a| */
    double squares;      /* sum of (b - a)^2 */
    double base_squares; /* sum of a^2 */
};

struct pair {
    const struct view *a, *b;
    struct difference difference; /* the answer */
};

/* Root of the mean square of the differences; and the same as a share of what `a` has. 0 where nothing differs. */
double difference_rms(const struct difference *difference);
double difference_relative(const struct difference *difference);

/* The bytes of F32 values that compare_pairs() adds to a progress for these pairs, at most. */
uint64_t compare_bytes(const struct pair *pairs, size_t n_pairs);

/* Compares each; fails where one cannot be read. The progress has begun. */
bool compare_pairs(struct pair *pairs, size_t n_pairs, struct progress *progress, struct error *error);
