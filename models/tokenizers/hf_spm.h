/* "llama" from a tokenizer.json alone, as transformers 5 saves it: a SentencePiece vocabulary with the scores that its
 * merges give back (merge_scores.h). */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"

/* Reports whether the converter's release of transformers cannot load the tokenizer, which a later one saved: it has a
 * class, or a list where that release has names. */
bool hf_is_too_new(const struct tokenizer_files *files);

/* Reports whether tokenizer.json has such a vocabulary. */
bool hf_spm_fits(const struct json *tokenizer);

/* Writes the keys. `by_looks` as for sentencepiece_add_decoder(). */
bool hf_spm_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                  bool by_looks, struct error *error);
