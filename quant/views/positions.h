/* Views of what belongs to positions: rotary tables, vectors of the places of a picture, and numbers that are
 * stored as differences from their places. */
#pragma once

#include "quant/views/view.h"

/* Tables of rotary positions, as TensorRT-LLM 1.2 computes them for long rope
 * (tensorrt_llm/functional.py, create_sinusoidal_positions_long_rope_for_attention_plugin).
 *
 * The angle of position p and frequency i is p * frequencies[i], in F32. Sines and cosines are numpy's for F32, bit for
 * bit: its reduction by pi / 2 in three steps and its polynomials (numpy 1.26, loops_trigonometric.dispatch.c.src, on a
 * processor with FMA), and cosf() and sinf() of the C library beyond ROTARY_COS_MAX and ROTARY_SIN_MAX, as in numpy. */

static const float ROTARY_COS_MAX = 71476.0625f, ROTARY_SIN_MAX = 117435.992f;

float rotary_cos(float angle);
float rotary_sin(float angle);

/* Returns `count` frequencies, 1 / (factors[i] * base^(i / count)), in the arena. The power is rounded to F32 before
 * the multiplication. */
const float *rotary_frequencies(struct arena *arena, double base, const float *factors, uint64_t count);

/* Returns the factor of sines and cosines for a model trained on `trained` positions, above 1, that supports
 * `positions`. */
float rotary_scale(uint64_t positions, uint64_t trained);

/* Returns an F32 view of the shape [1, n_positions * 2 * count]: cosine and sine of each frequency of position 0, then
 * those of position 1, all times `scale`. The frequencies must live as long as the arena. At most ROTARY_MAX_POSITIONS
 * positions, which F32 counts exactly. */
enum { ROTARY_MAX_POSITIONS = 1 << 24, ROTARY_MAX_FREQUENCIES = 1 << 16 };
const struct view *view_rotary(struct arena *arena, const float *frequencies, uint64_t count, uint64_t n_positions,
                               float scale);

/* Resizes a square picture of vectors bilinearly, with aligned corners, in F32, as torch.nn.functional.interpolate does
 * for adjacent channels. Which of its four products are fused was found by experiment; with these steps the results
 * equal those of torch 2.9.1 on a processor with FMA. */

/* Returns the side of a picture of the shape [1, side * side, channels]; 0 for any other shape. */
uint64_t bilinear_side(unsigned rank, const uint64_t *shape);

/* Returns the picture with the side `new_side`. NULL if `picture` is not a picture, or the side is 0 or above 4096. */
const struct view *view_bilinear(struct arena *arena, const struct view *picture, uint64_t new_side);

/* Tables of numbers that are stored as differences from their places. */

/* Returns each element of a view of I64 plus `times` its place, from 0; sums wrap around. */
const struct view *view_add_place(struct arena *arena, const struct view *view, int times);
