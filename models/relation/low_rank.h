/* Products of two matrices (quant/product.h) that stay products: what a relation makes of the weights that an adapter
 * changes, it makes of the adapter's two matrices.
 *
 * What moves rows moves those of the left factor, and the right one is that of every result; a transpose swaps both.
 * What moves columns among each other has no such form. */
#pragma once

#include "models/relation/rearrangement.h"

/* As rearrangement_apply() of one product, in its factors: false without an error where it has no such form. */
bool low_rank_rearrange(struct arena *arena, const struct rearrangement *rearrangement, enum direction direction,
                        const struct axis_sizes *sizes, const struct view *product, const struct view **to);

/* Reports whether a rearrangement does nothing but swap both axes of a matrix: "i o -> o i", "i (a b) -> (a b) i". */
bool low_rank_is_transpose(const struct rearrangement *rearrangement, enum direction direction);

/* As view_stack() of products of one shape; NULL where one of them is none, or their ranks differ. */
const struct view *low_rank_stack(struct arena *arena, const struct view *const *products, size_t n_products);
