/* Weights in the form that BitNet computes with: each is -1, 0 or 1 times the mean magnitude of its tensor.
 *
 * Any element depends on all of them: the first read reads the whole tensor, and keeps the mean. */
#pragma once

#include "quant/views/view.h"

/* Returns the weights in F16 for an F16 view, else in F32. */
const struct view *view_ternary(struct arena *arena, const struct view *view);
