/* BPE with byte fallback from a tokenizer.json, shared by the vocabularies based on it. */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"

/* Reports whether tokenizer.json is BPE with byte fallback and a decoder in steps. */
bool llama_hf_fits(const struct json *tokenizer);

/* Makes a list of the model's tokens, then the added ones that have ids of their own. */
bool llama_hf_list(const struct vocab_input *input, const struct hf_vocabulary *vocabulary, struct token_list *ret_list,
                   struct error *error);
