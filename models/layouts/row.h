/* A row of a layout: finds the sources of its tensors, by a dictionary of names, by names with values filled in, or by
 * patterns that match the model's tensors. */
#pragma once

#include "models/layouts/making.h"

/* Makes the tensors of a row. On failure, sets making->error. */
bool row_make(struct making *making, const struct layout_row *row);
