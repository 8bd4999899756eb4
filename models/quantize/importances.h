/* What an importance matrix, whose names are GGUF's, says of a checkpoint's own tensors: of one whose columns are those
 * of the matrix that the family's rows make of it, or of the expert in it. A tensor that is transposed on its way, or
 * becomes several, is not weighed. */
#pragma once

#include "models/quantize/imatrix.h"
#include "models/shown_tensors.h"

/* Of each tensor of the checkpoint that is shown, packed weights put together or not; in the arena. Where nothing is
 * known there are no columns. NULL where there is no matrix. */
const struct importance *importances_of(const struct checkpoint *checkpoint, const struct shown_tensors *shown,
                                        const struct imatrix *imatrix, const struct imatrix_filter *filter,
                                        struct arena *arena);
