/* Resizes a square picture of vectors bilinearly, with aligned corners, in F32, as torch.nn.functional.interpolate does
 * for adjacent channels. Which of its four products are fused was found by experiment; with these steps the results
 * equal those of torch 2.9.1 on a processor with FMA. */
#pragma once

#include "quant/views/view.h"

/* Returns the side of a picture of the shape [1, side * side, channels]; 0 for any other shape. */
uint64_t bilinear_side(unsigned rank, const uint64_t *shape);

/* Returns the picture with the side `new_side`. NULL if `picture` is not a picture, or the side is 0 or above 4096. */
const struct view *view_bilinear(struct arena *arena, const struct view *picture, uint64_t new_side);
