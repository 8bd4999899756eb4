/* Products of matrices as views, for low-rank adapters.
 *
 * left [..., n, r] and right [..., r, m] make [..., n, m]; all earlier dimensions are equal. An element is the sum over
 * r from the first term to the last in F64, with exact products, rounded to F32: in F32, sums of 64 terms were off by
 * up to 2.5 units in the last place. A range is computed from the rows of the left and the columns of the right that it
 * needs. As in view.h, shapes are the program's own and are asserted, and views live in the arena. Both factors have
 * element types that can be decoded. */
#pragma once

#include "quant/views/view.h"

const struct view *view_product(struct arena *arena, const struct view *left, const struct view *right);

/* Reports whether a view is a plain product, and returns its factors. */
bool view_factors(const struct view *view, const struct view **ret_left, const struct view **ret_right);

/* Returns view + scale * product in F32, both operations rounded. */
const struct view *view_add_product(struct arena *arena, const struct view *view, float scale, const struct view *left,
                                    const struct view *right);
