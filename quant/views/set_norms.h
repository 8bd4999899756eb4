/* A matrix whose rows or columns get new norms, for DoRA: row * (norm / |row|) in F32, and columns alike where the
 * weight is stored transposed, as embeddings are.
 *
 * |row| is the square root of the sum of squares in F64, rounded to F32; the quotient and the product are rounded, too.
 * An element depends on its row alone, but on the whole matrix for columns: there the first read of any range finds the
 * quotients, a finding (quant/views/finding.h). */
#pragma once

#include "quant/views/finding.h"
#include "quant/views/view.h"

/* Returns the matrix [n, m] in F32 with the norms [n] of its rows. */
const struct view *view_with_row_norms(struct arena *arena, const struct view *matrix, const struct view *norms);

/* Returns the matrix [n, m] in F32 with the norms [m] of its columns. The findings must live as long as the view. */
const struct view *view_with_column_norms(struct arena *arena, const struct view *matrix, const struct view *norms,
                                          struct findings *findings);
