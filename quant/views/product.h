/* Products of matrices as views, for low-rank adapters.
 *
 * left [..., n, r] and right [..., r, m] make [..., n, m]; all earlier dimensions are equal. An element is the sum over
 * r from the first term to the last in F64, with exact products, rounded to F32: in F32, sums of 64 terms were off by
 * up to 2.5 units in the last place. A range is computed from the rows of the left and the columns of the right that it
 * needs. As in view.h, shapes are the program's own and are asserted, and views live in the arena. Both factors have
 * element types that can be decoded. */
#pragma once

#include "quant/blocks/dtype.h"
#include "quant/views/view.h"

const struct view *view_product(struct arena *arena, const struct view *left, const struct view *right);

/* Reports whether a view is a plain product, and returns its factors. */
bool view_factors(const struct view *view, const struct view **ret_left, const struct view **ret_right);

/* Returns view + scale * product in F32, both operations rounded. */
const struct view *view_add_product(struct arena *arena, const struct view *view, float scale, const struct view *left,
                                    const struct view *right);

/* The sums of products (quant/views/product.h) for each processor level: terms in F64, where the product of two F32
 * numbers is exact, so that fused operations give the same sums. */

/* Adds terms to n_rows rows of n_columns sums, the rows `stride` sums apart: sums[i][j] += left[i][k] * right[k][j],
 * for k from the first to the last. left [n_rows, rank] and right [rank, n_columns] have no gaps. */
typedef void add_terms_function(const float *left, const float *right, uint64_t n_rows, uint64_t rank,
                                uint64_t n_columns, double *sums, uint64_t stride);

extern add_terms_function add_terms_portable, add_terms_neon, add_terms_avx2, add_terms_avx512;

add_terms_function *add_terms_at(enum cpu_level level);
