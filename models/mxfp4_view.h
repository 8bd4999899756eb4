/* MXFP4 as Hugging Face stores it, seen as ggml's blocks.
 *
 * There, a tensor [..., rows, n] is two: blocks U8 [..., rows, n / 32, 16], whose byte j holds element 2j in its low half and
 * 2j + 1 in its high half, and scales U8 [..., rows, n / 32]. In ggml's block the scale comes first, and byte j holds elements j
 * and j + 16. Only bits move. */
#pragma once

#include "quant/view.h"

/* NULL where the two shapes are not of one tensor. */
const struct view *mxfp4_view(struct arena *arena, const struct view *blocks, const struct view *scales, struct error *error);
