/* Rows scaled to the range of an 8-bit float, each by its own largest element.
 *
 * All in F32: elements are limited to +-1200, a row's scale is its largest magnitude / 448, at least 1 / (448 * 512),
 * and elements are divided by it. Source: TensorRT-LLM, quantization/layers.py, fp8_per_channel_quantize. */
#pragma once

#include "quant/views/view.h"

enum { SCALED_ROWS_LIMIT = 1200 };

/* Returns the scales: F32, the shape of `view` without its last dimension. Each is computed from a whole row. */
const struct view *view_row_scales(struct arena *arena, const struct view *view);

/* Returns the elements divided by the scale of their row, in F8_E4M3. */
const struct view *view_scaled_rows(struct arena *arena, const struct view *view);
