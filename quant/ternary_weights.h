/* Weights as BitNet computes with them: each is -1, 0 or 1 times the mean of the absolute values of its tensor.
 *
 * Any element depends on all of them: the first read of a tensor reads it whole, and the mean is kept. */
#pragma once

#include "quant/view.h"

/* Returns the weights in F16 for an F16 view, else in F32. */
const struct view *view_ternary(struct arena *arena, const struct view *view);
