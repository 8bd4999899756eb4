/* Views that remember their blocks, so that rearrangements (models/relation/rearrangement.h) can move whole blocks. */
#pragma once

#include "quant/views/view.h"

/* Returns blocks as F32 with their axes in another order, which blocks themselves do not permit: axis i is axis
 * order[i] of `blocks`. A rearrangement that restores the order moves whole blocks. */
const struct view *view_of_permuted_blocks(struct arena *arena, const struct view *blocks, const unsigned *order);

/* Returns the blocks of such a view and the order of their axes; NULL for any other view. */
const struct view *permuted_blocks_of(const struct view *view, const unsigned **ret_order);

/* Returns blocks whose factors the file stores separately: `values` are the blocks times their factors, for outputs
 * that need values. */
const struct view *view_of_scaled_blocks(struct arena *arena, const struct view *blocks, const struct view *values);

/* Returns the values of such a view, or the view itself if it is any other. */
const struct view *values_of_blocks(const struct view *view);

/* NVFP4 in groups of 16 values and their scale: four groups are a block of 64.
 *
 * ggml writes the scales of a block before its values. In groups, columns can be moved 16 at a time. */

/* Returns the groups of a view of NVFP4, 16 values in 9 bytes each; the shape stays. */
const struct view *view_nvfp4_groups(struct arena *arena, const struct view *blocks);

/* Returns the blocks of groups; NULL if a row is not made of whole blocks. */
const struct view *view_nvfp4_of_groups(struct arena *arena, const struct view *groups);
