/* What the Gemma families share. */
#pragma once

#include "models/families/family.h"

extern const struct relation_row gemma_tensors[];  /* of all: norms are stored less one, the output is the embedding */
extern const struct relation_row gemma2_tensors[]; /* of the second on: norms after attention and feed-forward, too */
extern const struct key_row gemma_keys[];

/* tokenizer.ggml.add_space_prefix is false. */
bool gemma_after_vocab(struct synthesis *synthesis, const struct vocab_input *input, struct error *error);
