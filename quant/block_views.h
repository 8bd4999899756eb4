/* Views of blocks that hold more than they show: what rearrangements (models/relation/rearrangement.h) see through, so
 * that whole blocks are moved where they can be. */
#pragma once

#include "quant/view.h"

/* Blocks seen in F32 with their axes in another order, which blocks themselves cannot take: axis i is axis order[i] of
 * `blocks`. A rearrangement that puts the axes back moves whole blocks. */
const struct view *view_of_permuted_blocks(struct arena *arena, const struct view *blocks, const unsigned *order);

/* The blocks of such a view, and the order of their axes; NULL of any other. */
const struct view *permuted_blocks_of(const struct view *view, const unsigned **ret_order);

/* Blocks that a file has factors beside: `values` are what they stand for with these, for outputs that take the
 * blocks apart. */
const struct view *view_of_scaled_blocks(struct arena *arena, const struct view *blocks, const struct view *values);

/* The values of such a view; any other is its own. */
const struct view *values_of_blocks(const struct view *view);
