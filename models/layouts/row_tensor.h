/* Makes the tensor of a layout's row from known sources: cuts and maps it, converts it to a dtype that the row allows,
 * and adds it to the file. Functions that fail set making->error. */
#pragma once

#include "models/layouts/making.h"

/* Finds the source of that name and marks it as used; *ret_view is NULL if it is missing. */
bool row_read_source(struct making *making, const char *name, const struct view **ret_view);

/* Makes the tensor of a row from its sources. */
bool row_make_tensor(struct making *making, const struct layout_row *row, const struct layout_sources *sources);

/* Makes the tensor of a row from sources of these names, still without views, if its condition holds. A missing source
 * is an error, unless the row is optional and all are missing. */
bool row_make_named(struct making *making, const struct layout_row *row, const struct layout_sources *named);
