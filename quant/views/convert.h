/* Encoding a view as another dtype: decode to F32, encode to the target, block by block.
 *
 * Values pass through F32 whatever the two dtypes are, as in the reference tools. Element types round to nearest even,
 * to F32 and from it; block types round as their own encoders do. Between equal dtypes units are copied unchanged,
 * whatever rule or importance the encoding has. */
#pragma once

#include "quant/blocks/dtype.h"
#include "quant/views/view.h"

/* Reports whether `view` can be shown as `target`: it has that dtype, or its own can be decoded, the target has an
 * encoder (and the importance that some dtypes need), and the row length is a multiple of the target's block. If not,
 * *ret_reason says why, as in "its row length is not a multiple of 256"; else it is left alone. */
bool convert_possible(const struct view *view, struct encoding target, const char **ret_reason);

/* Returns the bytes of the view encoded as `dtype`. */
uint64_t convert_bytes(const struct view *view, const struct dtype *dtype);

/* Encodes blocks [first, first + count) of `view` as `target` into `out`, if convert_possible(); a target with
 * importances has one for each column of each matrix of `view`, view_matrices() of them. Fails if the source cannot be
 * read, or if a block type meets a weight that is not finite or too large for its scale: such a range has no value in
 * the reference tools.
 */
bool convert_read(const struct view *view, struct encoding target, uint64_t first, uint64_t count, void *out,
                  struct error *error);

/* Reads elements [first, first + count) as F32 numbers of this machine, where convert_read() gives bytes as in a file.
 */
bool convert_values(const struct view *view, uint64_t first, uint64_t count, float *values, struct error *error);

/* Adds the stored bytes that convert_read() of these blocks reads, like view_depends(). */
void convert_depends(const struct view *view, struct encoding target, uint64_t first, uint64_t count,
                     struct dependencies *to);

/* Returns the approximate time for `count` blocks on one core in nanoseconds, 0 for units that are stored: it decides
 * whether to use several threads. */
uint64_t convert_cost(const struct view *view, struct encoding target, uint64_t count);

/* Replaces each element x by f(x) in F32, rounded to `dtype`, an element type (for an F16 view: F16 arithmetic on
 * F16 elements, since one F32 operation rounded to F16 is correctly rounded). `map` works in place on `n` values. */
typedef void map_function(float *values, size_t n);
const struct view *view_map(struct arena *arena, const struct view *view, const struct dtype *dtype, map_function *map);

/* Converts the elements to another dtype by its own encoder, without importance; returns `view` if it has that dtype.
 */
const struct view *view_convert(struct arena *arena, const struct view *view, const struct dtype *dtype);

/* Returns the view that view_convert() made `view` from, else `view`: a computation that goes on rounds only once. */
const struct view *view_unrounded(const struct view *view);

/* Conversion to F16 with one rounding, to nearest even, whatever the stored type is: view_convert() rounds F64 to F32
 * first. */

/* Returns the elements as F16; too large ones are infinite. The view's dtype must have an F32 form. */
const struct view *view_half(struct arena *arena, const struct view *view);
