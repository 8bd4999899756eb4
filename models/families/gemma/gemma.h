/* Shared by the Gemma families. */
#pragma once

#include "models/families/shared.h"

extern const struct relation_row gemma_tensors[];  /* for all: norms stored minus one; the output is the embedding */
extern const struct relation_row gemma2_tensors[]; /* from Gemma 2: norms after attention and feed-forward, too */
extern const struct relation_row gemma3_tensors[]; /* for Gemma 3: norms of queries and keys */
extern const struct relation_row gemma4_tensors[];
extern const struct key_row gemma_keys[], gemma3_keys[], gemma4_keys[];

extern const struct config_row gemma3_config_rows[], gemma4_config_rows[];

/* Sets tokenizer.ggml.add_space_prefix to false. */
bool gemma_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error);

/* Like gemma_after_vocab(), for SentencePiece models alone. */
bool gemma3_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error);

/* Sets "token" to the number of tokens: further rows of the embedding are padding, which llama.cpp does not expect. */
bool gemma3_count_tokens(struct model_builder *builder, struct error *error);

/* Adds rope_freqs.weight, which divides the frequencies of the unrotated part of a head by a huge number. */
bool gemma4_add_rope_factors(struct model_builder *builder, struct error *error);
