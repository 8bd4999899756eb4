/* The tensor that a row of a layout makes, once it is known what it is made of: cut, mapped, in one of the dtypes that
 * it may have, added to the file that is being made. Functions that fail set the error of the making. */
#pragma once

#include "models/layouts/making.h"

/* The source of that name, marked as used; *ret_view is NULL where there is none. */
bool row_read_source(struct making *making, const char *name, const struct view **ret_view);

/* Makes the tensor of a row from its sources. */
bool row_make_tensor(struct making *making, const struct layout_row *row, const struct layout_sources *sources);

/* Makes the tensor of a row whose sources have these names, if its condition holds. */
bool row_make_named(struct making *making, const struct layout_row *row, struct layout_sources *sources);
