/* Byte-level byte pair encoding, for the kinds of vocabulary that add to it. */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"

/* The keys of "gpt2", with special ids after those that the files give; fails as vocab_add() does. */
bool bpe_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
               const struct special_id *ids, size_t n_ids, struct error *error);
