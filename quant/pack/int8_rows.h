/* Rows as 8-bit integers, each scaled by its own largest element, as CTranslate2's converter quantizes. A row is
 * everything below the first axis.
 *
 * All in F32: the scale is 127 over the largest magnitude, 1 for zeros alone, and a code the product of element and
 * scale, rounded to nearest even. Reading a row with an element that is not finite fails. A range is computed from
 * whole rows.
 *
 * Source: CTranslate2, python/ctranslate2/specs/model_spec.py, quantize(). */
#pragma once

#include "quant/views/view.h"

/* Returns the codes, I8 in the shape of the view, which has two axes or more. */
const struct view *view_int8_rows(struct arena *arena, const struct view *view);

/* Returns the scales, F32 [rows]. */
const struct view *view_int8_row_scales(struct arena *arena, const struct view *view);
