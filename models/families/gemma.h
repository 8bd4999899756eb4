/* What the Gemma families share. */
#pragma once

#include "models/families/family.h"

extern const struct relation_row gemma_tensors[];  /* of all: norms are stored less one, the output is the embedding */
extern const struct relation_row gemma2_tensors[]; /* of the second on: norms after attention and feed-forward, too */
extern const struct relation_row gemma3_tensors[]; /* of the third: norms of queries and keys */
extern const struct key_row gemma_keys[], gemma3_keys[];

/* tokenizer.ggml.add_space_prefix is false. */
bool gemma_after_vocab(struct draft *draft, const struct vocab_input *input, struct error *error);

/* The same, where the tokens are those of a SentencePiece model. */
bool gemma3_after_vocab(struct draft *draft, const struct vocab_input *input, struct error *error);

/* Rows of the embedding after the last token are padding, which llama.cpp does not expect. */
bool gemma3_count_tokens(struct draft *draft, struct error *error);
