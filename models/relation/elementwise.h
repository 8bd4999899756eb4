/* Elementwise pairs: a function of each element, and its inverse.
 *
 * Arithmetic follows the reference converter: in F16 for F16 tensors, in F32 for all others. Each pair states how exact
 * its way back is. */
#pragma once

#include "models/relation/axes.h"
#include "quant/views/convert.h"

struct dimensions;

struct elementwise {
    const char *forward_text, *backward_text; /* "x + 1", "x - 1" */
    map_function *forward, *backward;

    /* Instead of both functions: computes a view, for example from dimensions. `dimensions` may be NULL. */
    const struct view *(*apply)(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                const struct view *view);
    bool is_one_way;       /* the way back does not restore the elements */
    const char *exactness; /* of both ways, for people */
};

extern const struct elementwise plus_one;
extern const struct elementwise minus_exp;
extern const struct elementwise softplus;
extern const struct elementwise plus_exp;

/* For `apply`: multiplies by the multipliers with these names, in this order; the way back divides. */
const struct view *elementwise_multiply(struct arena *arena, const struct dimensions *dimensions,
                                        enum direction direction, const struct view *view, const char *const *names,
                                        size_t n_names);

/* Applies the pair to a view; the result is F16 or F32 like `view`, F32 for other dtypes. */
const struct view *elementwise_apply(struct arena *arena, const struct elementwise *pair,
                                     const struct dimensions *dimensions, enum direction direction,
                                     const struct view *view);
