/* Integers of 2 or 4 bits, packed into bytes: I4, U4, I2 and U2, the first element in the lowest bits.
 *
 * A unit is a byte. Elements are packed across rows, and the last byte may be filled up with zeros: unlike other
 * dtypes, a tensor may end in the middle of a unit. Such a view can be read, decoded and expanded as a whole, not
 * sliced. */
#pragma once

#include "quant/views/view.h"

extern const struct dtype i4_dtype, u4_dtype, i2_dtype, u2_dtype;

/* Returns a view of packed elements of `bits` bits, 2 or 4, each in a byte of `dtype`, I8 or U8; the sign is extended
 * if `is_signed`. `packed` has units of a byte, which hold all elements. */
const struct view *view_sub_byte(struct arena *arena, const struct view *packed, unsigned bits, bool is_signed,
                                 const struct dtype *dtype, unsigned rank, const uint64_t *shape);

/* Reports whether a dtype is one of this file's. */
bool dtype_is_sub_byte(const struct dtype *dtype);

/* Returns a view of such a dtype with each element in a byte: I8 for I4 and I2, U8 for U4 and U2. */
const struct view *view_expand(struct arena *arena, const struct view *view);
