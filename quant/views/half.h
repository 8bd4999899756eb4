/* Conversion to F16 with one rounding, to nearest even, whatever the stored type is: view_convert() rounds F64 to F32
 * first. */
#pragma once

#include "quant/views/view.h"

/* Returns the elements as F16; too large ones are infinite. The view's dtype must have an F32 form. */
const struct view *view_half(struct arena *arena, const struct view *view);
