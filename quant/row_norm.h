/* A matrix whose rows get new norms, for DoRA: row * (norm / |row|) in F32.
 *
 * |row| is the square root of the sum of squares in F64, rounded to F32; the quotient and the product are rounded, too.
 * An element depends on its row alone. */
#pragma once

#include "quant/view.h"

/* Returns the matrix [n, m] in F32 with the norms [n] of its rows. */
const struct view *view_with_row_norms(struct arena *arena, const struct view *matrix, const struct view *norms);
