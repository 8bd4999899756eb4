/* Shared by the RWKV families. */
#pragma once

#include "models/families/shared.h"

/* Keeps a place for the converter's chat template, for models with the tokenizer of RWKV World. */
bool rwkv_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error);
