/* Importances of a checkpoint's own tensors, from an importance matrix with GGUF names. A tensor has importances if its
 * columns become the columns of one GGUF matrix, or of one expert in it; a tensor that is transposed or split on its
 * way has none. */
#pragma once

#include "models/quantize/imatrix.h"
#include "models/shown_tensors.h"

/* Returns the importances of each tensor that is shown, in the arena; a tensor without importances has no columns. NULL
 * if there is no matrix. */
const struct importance *importances_of(const struct checkpoint *checkpoint, const struct shown_tensors *shown,
                                        const struct imatrix *imatrix, const struct imatrix_filter *filter,
                                        struct arena *arena);
