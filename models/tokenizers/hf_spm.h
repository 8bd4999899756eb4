/* "llama" from a tokenizer.json alone, as transformers 5 saves it: a SentencePiece vocabulary with the scores that its
 * merges give back (merge_scores.h). */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"

/* Reports whether the converter's release of transformers cannot load the tokenizer, which a later one saved: it has a
 * class, or a list where that release has names. */
bool hf_is_too_new(const struct tokenizer_files *files);

/* Reports whether tokenizer.json has such a vocabulary. */
bool hf_spm_fits(const struct json *tokenizer);

/* How the vocabulary of a family differs. */
struct hf_spm_form {
    bool by_flags;   /* added tokens have the type that the file gives, whatever their texts look like */
    bool counts_all; /* scores count from the first id, not from the first piece (merge_scores.h) */
};

/* Writes the keys. */
bool hf_spm_write(struct gguf_kvs *kvs, const struct vocab_input *input, const struct hf_vocabulary *vocabulary,
                  struct hf_spm_form form, struct error *error);
