/* Elementwise pairs: a function of each element, and its inverse.
 *
 * Arithmetic is done as the reference converter does it: in F16 for F16 tensors, in F32 for all others. How exact the
 * way back is, is a part of the pair. */
#pragma once

#include "models/axes.h"
#include "quant/convert.h"

struct facts;

struct elementwise {
    const char *forward_text, *backward_text; /* "x + 1", "x - 1" */
    map_function *forward, *backward;

    /* Instead of both: what is computed from more than the element. `facts` may be NULL. */
    const struct view *(*apply)(struct arena *arena, const struct facts *facts, enum direction direction,
                                const struct view *view);
    bool is_one_way;       /* what comes back is not what was there */
    const char *exactness; /* of there and back, for people */
};

extern const struct elementwise plus_one;
extern const struct elementwise minus_exp;
extern const struct elementwise softplus; /* softplus.c */
extern const struct elementwise plus_exp;

/* For `apply`: multiplied with the factors of these names, one after the other, or divided on the way back. */
const struct view *elementwise_multiply(struct arena *arena, const struct facts *facts, enum direction direction,
                                        const struct view *view, const char *const *names, size_t n_names);

/* A view of F16 or F32; of the same dtype as `view` where that is one of them, else F32. */
const struct view *elementwise_apply(struct arena *arena, const struct elementwise *pair, const struct facts *facts,
                                     enum direction direction, const struct view *view);
