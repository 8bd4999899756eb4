/* A row of a layout: finds what it makes tensors of, by names of a dictionary, by names that are filled in, or by
 * patterns that tensors of the model are looked for with. */
#pragma once

#include "models/layouts/making.h"

/* Makes the tensors of a row. A failure sets the error of the making. */
bool row_make(struct making *making, const struct layout_row *row);
