/* The tensor that a row of a layout makes from known sources: cut, mapped, converted to a dtype that the row allows,
 * and added to the file. Functions that fail set the error of the making. */
#pragma once

#include "models/layouts/making.h"

/* Finds the source of that name and marks it as used; *ret_view is NULL if it is missing. */
bool row_read_source(struct making *making, const char *name, const struct view **ret_view);

/* Makes the tensor of a row from its sources. */
bool row_make_tensor(struct making *making, const struct layout_row *row, const struct layout_sources *sources);

/* Makes the tensor of a row whose sources have these names, if its condition holds. */
bool row_make_named(struct making *making, const struct layout_row *row, struct layout_sources *sources);
