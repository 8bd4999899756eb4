/* The Hugging Face model of a GGUF: its family's relations and keys read backwards. */
#pragma once

#include "models/huggingface/hf_model.h"

/* Returns the default type of matrices, and the reason: like hf_type(). */
const struct dtype *hf_gguf_type(const struct checkpoint *checkpoint, const char **ret_reason);

/* Fills in tensors, configuration and model type, and the type of what was quantized: BF16, which a note says, unless
 * there is a type for all. Where the family is not known, or its rows do not fit, names stay as they are, and a note
 * says so. */
bool hf_take_gguf(struct hf_model *model, struct error *error);
