/* Overflow-checked arithmetic on shapes and strides that come from a file. */
#pragma once

#include "quant/blocks/dtype.h"
#include "quant/views/view.h"

enum { SHAPE_MAX_RANK = 64 };

/* Computes the number of elements of a shape and their size in bytes. Fails if a partial product overflows, even if a
 * later dimension is 0, if the number of bits does not fit in 64 bits, or if the elements are not whole blocks of the
 * dtype, which packed integers (quant/views/sub_byte.h) need not be. *ret_misaligned, if not NULL, tells the last case
 * apart.
 */
bool shape_size(const struct dtype *dtype, const uint64_t *shape, unsigned rank, uint64_t *ret_elements,
                uint64_t *ret_bytes, bool *ret_misaligned);

/* Sets row-major strides, in elements. The shape has passed shape_size(). */
void shape_row_major_strides(const uint64_t *shape, unsigned rank, uint64_t *strides);

/* Tiles: views that cover a tensor together, each at its place, joined into one view.
 *
 * Tiles that cover a shape without gaps or overlaps are joined where straight cuts through the whole shape separate
 * them, one dimension after the other, as sharding over a mesh of devices makes them: rows, columns, or a grid. */

struct tile {
    const struct view *view; /* without dimensions of size 0 */
    const uint64_t *first;   /* the place of its first element in the whole */
};

/* Joins `n` tiles of one dtype, which the function reorders. Returns NULL, with a reason, if they leave gaps, overlap,
 * or are not separated by straight cuts. */
const struct view *tiles_join(struct arena *arena, struct tile *tiles, size_t n, unsigned rank, const uint64_t *shape,
                              const char **ret_reason);
