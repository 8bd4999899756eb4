/* Encoding a short text as a Hugging Face tokenizer does: added tokens, normalizer, pre-tokenizer, model,
 * post-processor.
 *
 * What identifies a tokenizer is how it cuts one fixed text (pre.h), so this is made for texts of some hundred
 * characters. The pre-tokenizer's regular expressions are run by PCRE2, with limits: they come from a file. What is not
 * known - a normalizer, a pattern that does not compile - is an error; the caller has a fallback.
 *
 * Whatever the file asks for, it takes no more than the work that it is given (work.h) besides time in O(N log N) for
 * merges of N bytes; what would take more is an error too, and leaves no work.
 *
 * Source: huggingface/tokenizers. */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"
#include "models/tokenizers/work.h"

enum { ENCODE_MAX_TEXT = 4096 };

/* The ids of `text`, in the vocabulary's arena, with those that the post-processor adds. */
bool hf_encode(const struct hf_vocabulary *vocabulary, const char *text, size_t length, struct work *work,
               uint32_t **ret_ids, size_t *ret_count, struct error *error);
