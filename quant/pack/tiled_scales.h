/* Scales of groups in the order in which tensor cores take them.
 *
 * A tile holds 128 rows and 4 columns in 32 x 4 x 4 bytes: row r is at [r % 32][r / 32]. Tiles follow one another from
 * left to right, then down; what they have beyond the matrix is zero. Source: cuBLAS, layout of scaling factors for
 * blocks of 16 and 32. */
#pragma once

#include "quant/views/view.h"

/* Returns a matrix of bytes in tiles; its shape is rounded up to whole tiles. */
const struct view *view_tiled_scales(struct arena *arena, const struct view *scales);
