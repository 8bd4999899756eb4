/* A row of a layout: finds the sources of its tensors, by a dictionary of names, by names with values filled in, or by
 * patterns that match the model's tensors. */
#pragma once

#include "models/layouts/making.h"

/* Makes the tensors of a row. On failure, sets making->error. */
bool row_make(struct making *making, const struct layout_row *row);

/* Make the tensor of a row from known sources (row_tensor.c): cut and map it, convert it to a dtype that the row
 * allows, and add it to the file. On failure, they set making->error. */

/* Finds the source of that name and marks it as used; *ret_view is NULL if it is missing. */
bool row_read_source(struct making *making, const char *name, const struct view **ret_view);

/* Makes the tensor of a row from its sources. */
bool row_make_tensor(struct making *making, const struct layout_row *row, const struct layout_sources *sources);

/* Makes the tensor of a row from sources of these names, still without views, if its condition holds. A missing source
 * is an error, unless the row is optional and all are missing. */
bool row_make_named(struct making *making, const struct layout_row *row, const struct layout_sources *named);
