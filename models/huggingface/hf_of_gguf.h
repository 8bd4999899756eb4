/* The Hugging Face model of a GGUF: its family's relations and keys read backwards. */
#pragma once

#include "models/huggingface/hf_model.h"

/* Returns the default type of matrices, and the reason, like hf_type(). */
const struct dtype *hf_gguf_type(const struct checkpoint *checkpoint, const char **ret_reason);

/* Fills in tensors, configuration, model type, and the type of dequantized matrices: model->type, or else BF16, with a
 * note. If the family is unknown, or its rows do not fit, tensors keep their names, there is no configuration, and a
 * note gives the reason. */
bool hf_take_gguf(struct hf_model *model, struct error *error);
