/* Products of two matrices (quant/views/product.h) that stay products: a relation changes an adapter's two matrices
 * like the weight that they adapt.
 *
 * Moving rows moves the left factor's rows, and every result keeps the right factor; moving only columns of a matrix
 * moves the right factor's; a transpose swaps the factors. Other changes have no such form. */
#pragma once

#include "models/relation/rearrangement.h"

/* Like rearrangement_apply(), for the factors of one product. Returns false, without an error, if no such form exists.
 */
bool low_rank_rearrange(struct arena *arena, const struct rearrangement *rearrangement, enum direction direction,
                        const struct axis_sizes *sizes, const struct view *product, const struct view **to);

/* Reports whether a rearrangement only swaps the two axes of a matrix: "i o -> o i", "i (a b) -> (a b) i". */
bool low_rank_is_transpose(const struct rearrangement *rearrangement, enum direction direction);

/* Like view_stack(), for products of one shape. Returns NULL if a view is not a product, or the ranks differ. */
const struct view *low_rank_stack(struct arena *arena, const struct view *const *products, size_t n_products);
