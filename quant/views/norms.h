/* Matrices with other norms of their rows or columns, and vectors minus their mean. */
#pragma once

#include "quant/views/finding.h"
#include "quant/views/view.h"

/* A matrix whose rows or columns get new norms, for DoRA: row * (norm / |row|) in F32, and columns alike where the
 * weight is stored transposed, as embeddings are.
 *
 * |row| is the square root of the sum of squares in F64, rounded to F32; the quotient and the product are rounded, too.
 * An element depends on its row alone, but on the whole matrix for columns: there the first read of any range finds the
 * quotients, a finding (quant/views/finding.h). */

/* Returns the matrix [n, m] in F32 with the norms [n] of its rows. */
const struct view *view_with_row_norms(struct arena *arena, const struct view *matrix, const struct view *norms);

/* Returns the matrix [n, m] in F32 with the norms [m] of its columns. The findings must live as long as the view. */
const struct view *view_with_column_norms(struct arena *arena, const struct view *matrix, const struct view *norms,
                                          struct findings *findings);

/* A matrix with each column divided by its norm, as models with `norm_head` use their head: torch.norm(x, p=2, dim=0) +
 * 1e-7 in F32, summing squares row after row like torch.
 *
 * An element depends on its whole column: the first read reads the whole matrix, and keeps the norms. */

/* Returns the matrix in F32. */
const struct view *view_normalize_columns(struct arena *arena, const struct view *matrix);

/* A vector minus its mean, in F32, as torch computes both. */

/* Limit of length, because reading one element reads all elements. */
enum { LESS_MEAN_MAX_ELEMENTS = 65536 };

/* Returns the vector minus its mean; NULL unless it is a vector of 1 to LESS_MEAN_MAX_ELEMENTS elements. */
const struct view *view_less_mean(struct arena *arena, const struct view *vector);
