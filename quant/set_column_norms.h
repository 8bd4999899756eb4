/* A matrix whose columns get new norms, for DoRA of weights that are stored transposed, and of embeddings: column *
 * (norm / |column|) in F32.
 *
 * |column| is the square root of the sum of squares in F64, rounded to F32; the quotient and the product are rounded,
 * too. The first read of any range reads the whole matrix; the quotients are a finding (quant/finding.h). */
#pragma once

#include "quant/finding.h"
#include "quant/view.h"

/* Returns the matrix [n, m] in F32 with the norms [m] of its columns. The findings must live as long as the view. */
const struct view *view_with_column_norms(struct arena *arena, const struct view *matrix, const struct view *norms,
                                          struct findings *findings);
