/* Elements of 2 or 4 bits as bytes. */
#pragma once

#include "quant/view.h"

/* Returns a view of elements of `bits` bits, 2 or 4, each in a byte: I8 with the sign extended, or U8. `packed` is a
 * vector of U8 that holds them all, the first element in the lowest bits. */
const struct view *view_sub_byte(struct arena *arena, const struct view *packed, unsigned bits, bool is_signed,
                                 unsigned rank, const uint64_t *shape);
