/* A matrix with each column divided by its norm, as models with `norm_head` use their head: torch.norm(x, p=2, dim=0) +
 * 1e-7 in F32, summing squares row after row like torch.
 *
 * An element depends on its whole column: the first read reads the whole matrix, and keeps the norms. */
#pragma once

#include "quant/views/view.h"

/* Returns the matrix in F32. */
const struct view *view_normalize_columns(struct arena *arena, const struct view *matrix);
