/* The canonical model of a GGUF: its family's relations and keys read backwards. */
#pragma once

#include "models/canonical.h"

/* The type of matrices, where none is wanted, and why: as canonical_type(). */
const struct dtype *canonical_gguf_type(const struct checkpoint *checkpoint, const char **ret_reason);

/* Fills in tensors, types, configuration and model type. `wanted` is what floating-point tensors are written as; NULL:
 * as the file has them, F32, F16 or BF16, but what is quantized as BF16, which a note says. Where the family is not
 * known, or its rows do not fit, names stay as they are, and a note says so. */
bool canonical_take_gguf(struct canonical_model *model, const struct dtype *wanted, struct error *error);
