/* Shared by the tokenizers of Mistral's own format, whatever file has their tokens: gguf-py vocab.py,
 * MistralVocab; conversion/base.py, _set_vocab_mistral. */
#pragma once

#include "models/tokenizers/vocab.h"

/* The ids of tokens that have a part to play, of a list of fewer than 2^32; padding may be MISTRAL_NO_ID, and is the
 * end then. Fails, naming `file`, where another is missing. */
#define MISTRAL_NO_ID UINT64_MAX
struct mistral_ids {
    uint64_t begin, end, unknown, padding;
};
bool mistral_write_ids(struct gguf_kvs *kvs, const struct mistral_ids *ids, const char *file, struct error *error);

/* The keys after the list of tokens: its length, what a text begins and ends with, and the template of a chat:
 * chat_template.jinja, or the `name` of one that llama.cpp knows. With neither, a note says so, and names the version
 * of the tokenizer. */
bool mistral_write_end(struct gguf_kvs *kvs, const struct vocab_input *input, uint64_t n_tokens, const char *name,
                       const char *version, struct error *error);
