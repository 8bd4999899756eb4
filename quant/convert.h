/* Encoding a view as another dtype: decode to F32, encode to the target, block by block.
 *
 * Values pass through F32 whatever the two dtypes are, each step rounded to nearest even, as the reference tools do.
 * Where the dtypes are the same the units are copied as they are. */
#pragma once

#include "quant/view.h"

/* Whether `view` can be shown as `target`: both have kernels for it and the row length is a multiple of the target's
 * block. If not, *ret_reason says why, as in "row length 80 is not a multiple of 256". */
bool convert_possible(const struct view *view, const struct dtype *target, const char **ret_reason);

/* Bytes of the view encoded as `target`. */
uint64_t convert_bytes(const struct view *view, const struct dtype *target);

/* Blocks [first, first + count) of `view` as `target`, into `out`. Fails where the source cannot be read, and where a block
 * type meets a weight that is not finite or too large for its scale: such a range has no value in the reference tools. */
bool convert_read(const struct view *view, const struct dtype *target, uint64_t first, uint64_t count, void *out,
                  struct error *error);

/* Rough time for `count` blocks on one core, in nanoseconds: to decide whether splitting pays. */
uint64_t convert_cost(const struct view *view, const struct dtype *target, uint64_t count);
