/* Shared by the tokenizers of Mistral's own format, whichever file has their tokens. Source: gguf-py vocab.py,
 * MistralVocab; conversion/base.py, _set_vocab_mistral. */
#pragma once

#include "models/tokenizers/vocab.h"

/* Writes the ids of the special tokens, each below 2^32. Padding may be MISTRAL_NO_ID: then it is the end token. If
 * another id is missing, fails with an error that names `file`. */
#define MISTRAL_NO_ID UINT64_MAX
struct mistral_ids {
    uint64_t begin, end, unknown, padding;
};
bool mistral_write_ids(struct gguf_kvs *kvs, const struct mistral_ids *ids, const char *file, struct error *error);

/* Writes the keys after the list of tokens: its length, BOS but no EOS around texts, and the chat template:
 * chat_template.jinja, else `name`, a template that llama.cpp knows, may be NULL. Without either, adds a note with the
 * tokenizer's version. Fails if chat_template.jinja cannot be read. */
bool mistral_write_end(struct gguf_kvs *kvs, const struct vocab_input *input, uint64_t n_tokens, const char *name,
                       const char *version, struct error *error);
