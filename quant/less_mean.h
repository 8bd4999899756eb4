/* A vector less its mean, in F32, as torch computes both. */
#pragma once

#include "quant/view.h"

/* Longer vectors are not made: each read of one element reads all. */
enum { LESS_MEAN_MAX_ELEMENTS = 65536 };

/* NULL for what is not a vector of at least one element and at most LESS_MEAN_MAX_ELEMENTS. */
const struct view *view_less_mean(struct arena *arena, const struct view *vector);
