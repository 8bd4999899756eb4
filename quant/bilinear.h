/* Resizes a square picture of vectors bilinearly with its corners aligned, in F32, as
 * torch.nn.functional.interpolate computes it of channels that lie next to each other: which of its four products are
 * fused was found by trying; with these steps there is no difference from torch 2.9.1 on a processor with FMA. */
#pragma once

#include "quant/view.h"

/* Returns the side of a picture of the shape [1, side * side, channels]; 0 for any other shape. */
uint64_t bilinear_side(unsigned rank, const uint64_t *shape);

/* Returns the picture with the side `new_side`. NULL if it is not a picture, or the side is 0 or too large. */
const struct view *view_bilinear(struct arena *arena, const struct view *picture, uint64_t new_side);
