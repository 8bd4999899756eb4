/* Merges of models: the arithmetic of one tensor.
 *
 * A method makes a view of the merged tensor from views of the same tensor in each model. All have one shape; each is
 * rounded to the work dtype when it is read, and the result is in the work dtype: callers convert it further. The
 * functions are of one kind, so that a table of methods can name them. They read nothing; as in view.h, operands are
 * the program's own and are asserted, and views live in the arena. `operands` and its arrays may be temporary.
 *
 * Results are those of mergekit with torch on a processor with FMA, on one thread: rounding to the work dtype after
 * each operation and torch's order of summation. NaN stays NaN, with any sign and payload. Sines, cosines and arc
 * cosines are rounded correctly, those of torch are not always: such methods can differ in the last place.
 *
 * Methods that work element by element read just the range that is wanted. The others read the whole of their inputs
 * once, when a range is read first, and keep a few numbers or bits (finding.h). Source: mergekit, merge_methods/;
 * torch, aten/src/ATen/native. */
#pragma once

#include "quant/arithmetic/torch_functions.h"
#include "quant/views/finding.h"
#include "quant/views/view.h"

/* One model, with the parameters of its own. Methods ignore those that they do not have. */
struct merge_model {
    const struct view *view;
    double weight, scale, density, gamma, epsilon;
};

/* How differences from the base are thinned out, where a model's density is less than 1. */
enum merge_sparsifier {
    MERGE_DENSE,              /* not at all, whatever the density */
    MERGE_MAGNITUDE,          /* the largest stay: density of them */
    MERGE_MAGNITUDE_OUTLIERS, /* of the largest, gamma of all go; then density of all stay */
    MERGE_RANDOM,             /* each stays with the probability `density` */
    MERGE_DELLA               /* with one by the rank in its row, from density - epsilon to density + epsilon */
};

/* The inputs of one tensor, with the parameters that they share. */
struct merge_operands {
    const struct dtype *dtype;        /* the work dtype: F32, F16 or BF16 */
    const struct view *base;          /* NULL: none */
    const struct merge_model *models; /* in the recipe's order, without the base unless the method says otherwise */
    size_t n_models;                  /* at least 1 */

    enum merge_sparsifier sparsifier;
    struct mersenne *random; /* for MERGE_RANDOM and MERGE_DELLA: the sequence of the seed; lives as long as the view */
    uint64_t first_word;     /* the first of its words for this tensor: those of tensors before come before */
    struct findings *findings; /* of methods that read whole tensors; live as long as the view */

    double lambda, t, eps, tol, select_topk;
    unsigned max_iter;
    bool normalize, rescale, signs, filter_wise, flatten, row_wise;
};

enum { MERGE_MAX_ITER = 100 }; /* the most steps of karcher: each reads the tensor three times */

typedef const struct view *merge_function(struct arena *arena, const struct merge_operands *operands);

/* linear: the sum of models times their weights, with fused operations in F32; divided by the sum of the weights if
 * `normalize`. `base` is ignored: a base that takes part is one of the models. */
merge_function merge_linear;

/* passthrough with a scale: the only model times its scale. */
merge_function merge_scaled;

/* task_arithmetic, ties, dare_*, breadcrumbs*, della*: the base plus lambda times the sum of the weighted differences
 * of the models from it, thinned out first. With `rescale`, what is left of a model's differences is multiplied so that
 * the sum of their magnitudes stays. With `signs`, only the differences are added that have the sign of the sum of all,
 * element by element. With `normalize` the sum is divided by the sum of the weights of what was added.
 *
 * Which of equal magnitudes stay is what std::sort of libstdc++ does. MERGE_DELLA takes vectors and matrices; density -
 * epsilon and density + epsilon are between 0 and 1 where density is. */
merge_function merge_task_arithmetic;

/* Returns how many random words a tensor draws. */
uint64_t merge_words(const struct merge_operands *operands);

/* slerp: from the base (t 0) to the only model (t 1), as vectors in F32. Nearly
 * parallel ones are mixed without sines. */
merge_function merge_slerp;

/* nuslerp: from the first to the second model, or of their differences from the base, as one vector if `flatten`, else
 * row by row, or with `row_wise` column by column. In F32, rows whose sines are not torch's differ in the last place.
 */
merge_function merge_nuslerp;

/* multislerp: the weighted mean of the models, or of their differences from the base, as directions; with `normalize`
 * (normalize_weights) the weights are divided by their sum. Reading fails if the mean of more than two is 0. */
merge_function merge_multislerp;

/* model_stock: from the base towards the mean of at least two models, by the angles between their differences from it:
 * as one vector each, or row by row (filter_wise). */
merge_function merge_model_stock;

/* sce: the differences of the models from the base, of the share select_topk of elements that vary most among them,
 * weighted by their mean squares; only those that have the sign of the sum of all, element by element. */
merge_function merge_sce;

/* nearswap: from the base to the only model, the more (t) the nearer an element is. */
merge_function merge_nearswap;

/* karcher: the mean of the models on a sphere, in at most max_iter steps, until one is shorter than tol. `base` is
 * ignored: one that takes part is one of the models. In BF16 and F16 only: in F32 its dot products are those of MKL,
 * whose order nobody knows. */
merge_function merge_karcher;
