/* A vector minus its mean, in F32, as torch computes both. */
#pragma once

#include "quant/views/view.h"

/* Limit of length, because reading one element reads all elements. */
enum { LESS_MEAN_MAX_ELEMENTS = 65536 };

/* Returns the vector minus its mean; NULL unless it is a vector of 1 to LESS_MEAN_MAX_ELEMENTS elements. */
const struct view *view_less_mean(struct arena *arena, const struct view *vector);
