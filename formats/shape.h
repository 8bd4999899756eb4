/* Overflow-checked arithmetic on shapes and strides that come from a file. */
#pragma once

#include "quant/blocks/dtype.h"

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

/* Writes "[2, 3]", for messages, cut to `capacity` bytes with the NUL. Returns `out`. */
const char *shape_text(const uint64_t *shape, unsigned rank, char *out, size_t capacity);
