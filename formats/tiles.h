/* Tiles: views that cover a tensor together, each at its place, joined into one view.
 *
 * Tiles that cover a shape without gaps or overlaps are joined where straight cuts through the whole shape separate
 * them, one dimension after the other, as sharding over a mesh of devices makes them: rows, columns, or a grid. */
#pragma once

#include "quant/views/view.h"

struct tile {
    const struct view *view; /* without dimensions of size 0 */
    const uint64_t *first;   /* the place of its first element in the whole */
};

/* Joins `n` tiles of one dtype, which the function reorders. Returns NULL, with a reason, if they leave gaps, overlap,
 * or are not separated by straight cuts. */
const struct view *tiles_join(struct arena *arena, struct tile *tiles, size_t n, unsigned rank, const uint64_t *shape,
                              const char **ret_reason);
