/* A square picture of vectors made smaller or larger, bilinearly with its corners aligned, in F32, as
 * torch.nn.functional.interpolate computes it of channels that lie next to each other: which of its four products are
 * fused was found by trying; with these steps there is no difference from torch 2.9.1 on a processor with FMA. */
#pragma once

#include "quant/view.h"

/* The side of a picture of that shape, which is [1, side * side, channels]; 0 where it is not. */
uint64_t bilinear_side(unsigned rank, const uint64_t *shape);

/* The picture with `new_side` in the place of its side. NULL where it is none, or that is 0 or too large. */
const struct view *view_bilinear(struct arena *arena, const struct view *picture, uint64_t new_side);
