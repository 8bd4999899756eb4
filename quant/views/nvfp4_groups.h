/* NVFP4 in groups of 16 values and their scale: four groups are a block of 64.
 *
 * ggml writes the scales of a block before its values. In groups, columns can be moved 16 at a time. */
#pragma once

#include "quant/views/view.h"

/* Returns the groups of a view of NVFP4, 16 values in 9 bytes each; the shape stays. */
const struct view *view_nvfp4_groups(struct arena *arena, const struct view *blocks);

/* Returns the blocks of groups; NULL if a row is not made of whole blocks. */
const struct view *view_nvfp4_of_groups(struct arena *arena, const struct view *groups);
