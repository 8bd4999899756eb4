/* What the RWKV families share. */
#pragma once

#include "models/families/family.h"

/* For all that have the tokenizer of RWKV's world: a place for the chat template that the converter has for them. */
bool rwkv_after_vocab(struct draft *draft, const struct vocab_input *input, struct error *error);
