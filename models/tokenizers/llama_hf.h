/* BPE with byte fallback from a tokenizer.json, for the kinds of vocabulary that are made of it. */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"

/* Reports whether tokenizer.json is of the kind. */
bool llama_hf_fits(const struct json *tokenizer);

/* The tokens of the model, and after them the added ones that have ids of their own. */
bool llama_hf_list(const struct vocab_input *input, const struct hf_vocabulary *vocabulary, struct token_list *ret_list,
                   struct error *error);

/* Reports whether the token stands for a byte: "<0x0A>". */
bool llama_hf_is_byte(const char *text, size_t length);
