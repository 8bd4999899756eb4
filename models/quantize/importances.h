/* Importances of a checkpoint's own tensors, from an importance matrix with GGUF names. A tensor has importances if its
 * columns become the columns of one GGUF matrix, or of one expert in it; a tensor that the conversion transposes or
 * divides has none. */
#pragma once

#include "models/quantize/imatrix.h"
#include "models/shown_tensors.h"

/* Returns the importances of each shown tensor, in the arena; for a tensor without any, `columns` is NULL. Returns NULL
 * if `imatrix` is NULL; it must outlive the result. */
const struct importance *importances_of(const struct checkpoint *checkpoint, const struct shown_tensors *shown,
                                        const struct imatrix *imatrix, const struct imatrix_filter *filter,
                                        struct arena *arena);
