/* Values side by side: for `wfs diff` and `wfs verify`.
 *
 * All cores compare two views with equal numbers of elements: first the stored bytes if both have one dtype, then, if
 * these differ, the values as F32. Equal numbers do not differ, nor do two NaNs; if only one value is a NaN or
 * infinite, the difference is infinite. */
#pragma once

#include "quant/views/view.h"

struct difference {
    bool same_bytes;     /* and the same dtype */
    bool has_values;     /* both can be read as F32; else the fields after n_elements are 0 */
    uint64_t n_elements; /* of each view */
    uint64_t n_different;
    double largest;      /* of |b - a| */
    double squares;      /* sum of (b - a)^2 */
    double base_squares; /* sum of a^2 */
};

struct pair {
    const struct view *a, *b;
    struct difference difference; /* filled in by compare_pairs() */
};

/* Return the root mean square of the differences, and its ratio to `a`'s: infinite if `a` is 0; 0 if none differs. */
double difference_rms(const struct difference *difference);
double difference_relative(const struct difference *difference);

/* Returns the most bytes of F32 values that compare_pairs() adds to a stage for these pairs. */
uint64_t compare_bytes(const struct pair *pairs, size_t n_pairs);

/* Compares each pair; fails if one cannot be read. A stage must have begun (fs/lib/stage.h). */
bool compare_pairs(struct pair *pairs, size_t n_pairs, struct error *error);
