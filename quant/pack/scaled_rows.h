/* Rows scaled to the range of 8 bits, each by its own largest element. All in F32. A range is computed from whole rows.
 *
 * As 8-bit floats, a row is the last dimension: elements are limited to +-1200, a row's scale is its largest magnitude
 * / 448, at least 1 / (448 * 512), and elements are divided by it. Source: TensorRT-LLM, quantization/layers.py,
 * fp8_per_channel_quantize.
 *
 * As 8-bit integers, a row is everything below the first axis of two or more: its scale is 127 over its largest
 * magnitude, 1 for zeros alone, and a code the product of element and scale, rounded to nearest even. Reading a row
 * with an element that is not finite fails. Source: CTranslate2, python/ctranslate2/specs/model_spec.py, quantize(). */
#pragma once

#include "quant/views/view.h"

enum { SCALED_ROWS_LIMIT = 1200 };

/* Returns the scales: F32, the shape of `view` without its last dimension. */
const struct view *view_row_scales(struct arena *arena, const struct view *view);

/* Returns the elements divided by the scale of their row, in F8_E4M3. */
const struct view *view_scaled_rows(struct arena *arena, const struct view *view);

/* Returns the scales of 8-bit integers: F32 [rows]. */
const struct view *view_int8_row_scales(struct arena *arena, const struct view *view);

/* Returns the codes, I8 in the shape of the view. */
const struct view *view_int8_rows(struct arena *arena, const struct view *view);
