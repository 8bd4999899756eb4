/* Shared by the RWKV families. */
#pragma once

#include "models/families/shared.h"

/* For all that have the tokenizer of RWKV's world: a place for the chat template that the converter has for them. */
bool rwkv_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error);
