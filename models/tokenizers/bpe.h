/* Byte-level byte pair encoding, shared by the vocabularies that add special ids to it. */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"

/* Reports whether the pieces of tokenizer.json are not SentencePiece's, which "gpt2" would split into noise. */
bool bpe_fits(const struct json *tokenizer);

/* Writes the keys of "gpt2"; `ids`, at most SPECIAL_IDS, follow the special ids of the files. Fails for an invalid
 * file, or if the check text's budget or the limit of tokens is exceeded. */
bool bpe_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
               const struct special_id *ids, size_t n_ids, struct error *error);
