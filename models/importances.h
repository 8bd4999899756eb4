/* What an importance matrix, whose names are GGUF's, says of a checkpoint's own tensors: of one whose columns are those
 * of the matrix that the family's rows make of it, or of the expert in it. A tensor that is transposed on its way, or
 * becomes several, is not weighed. */
#pragma once

#include "formats/checkpoint.h"
#include "models/imatrix.h"

/* Of each tensor of the set, which is the checkpoint's, packed weights put together or not; in the arena. Where nothing
 * is known there are no columns. NULL where there is no matrix. */
const struct importance *importances_of(const struct checkpoint *checkpoint, const struct tensor_set *set,
                                        const struct imatrix *imatrix, const struct imatrix_filter *filter,
                                        struct arena *arena);
