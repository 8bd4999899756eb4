/* Encodes a short text as a Hugging Face tokenizer does: added tokens, normalizer, pre-tokenizer, model (BPE or
 * WordPiece), post-processor.
 *
 * The ids of one fixed text identify a tokenizer (pre.h), so this module is made for texts of some hundred characters.
 * PCRE2 runs the pre-tokenizer's regular expressions, which come from a file, under limits. Anything unsupported - a
 * normalizer, a Unigram model, a pattern that does not compile - is an error; the caller has a fallback.
 *
 * Encoding spends the given budget (work.h), plus O(N log N) time for merges of N bytes. Exceeding the budget is an
 * error that leaves work.left at 0.
 *
 * Source: huggingface/tokenizers. */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"
#include "models/tokenizers/work.h"

enum { ENCODE_MAX_TEXT = 4096 };

/* Encodes `text`: the ids, with the post-processor's, in the vocabulary's arena. Fails above ENCODE_MAX_TEXT bytes. */
bool hf_encode(const struct hf_vocabulary *vocabulary, const char *text, size_t length, struct work *work,
               uint32_t **ret_ids, size_t *ret_count, struct error *error);
