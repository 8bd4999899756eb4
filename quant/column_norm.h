/* A matrix whose columns are divided by their norms, as a head with `norm_head` is used: torch.norm(x, p=2, dim=0) +
 * 1e-7 in F32, whose squares torch adds row after row.
 *
 * Any element depends on all of its column: the first read reads the matrix whole, and the norms are kept. */
#pragma once

#include "quant/view.h"

/* Returns the matrix in F32. */
const struct view *view_normalize_columns(struct arena *arena, const struct view *matrix);
