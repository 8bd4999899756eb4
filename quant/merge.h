/* Merges of models: the arithmetic of one tensor.
 *
 * A method makes a view of the merged tensor from views of the same tensor in each model. All have one shape; each is
 * rounded to the work dtype when it is read, and the result is in the work dtype: callers convert it further. The
 * functions are of one kind, so that a table of methods can name them. They read nothing; as in view.h, operands are
 * the program's own and are asserted, and views live in the arena. `operands` and its arrays may be temporary.
 *
 * Results are those of mergekit with torch on a processor with FMA, on one thread: rounding to the work dtype after
 * each operation and torch's order of summation. NaN stays NaN, with any sign and payload.
 *
 * Methods that work element by element read just the range that is wanted. Source: mergekit, merge_methods/; torch,
 * aten/src/ATen/native. */
#pragma once

#include "quant/view.h"

/* One model, with the parameters of its own. Methods ignore those that they do not have. */
struct merge_model {
    const struct view *view;
    double weight, scale;
};

/* The inputs of one tensor, with the parameters that they share. */
struct merge_operands {
    const struct dtype *dtype;        /* the work dtype: F32, F16 or BF16 */
    const struct view *base;          /* NULL: none */
    const struct merge_model *models; /* in the recipe's order, without the base unless the method says otherwise */
    size_t n_models;                  /* at least 1 */
    bool normalize;
};

typedef const struct view *merge_function(struct arena *arena, const struct merge_operands *operands);

/* linear: the sum of models times their weights, with fused operations in F32; divided by the sum of the weights if
 * `normalize`. `base` is ignored: a base that takes part is one of the models. */
merge_function merge_linear;

/* passthrough with a scale: the only model times its scale. */
merge_function merge_scaled;
