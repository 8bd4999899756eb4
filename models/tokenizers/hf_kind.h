/* The kind of vocabulary that a tokenizer.json has, decided by the model and its steps, never by how text is cut
 * before: a BPE of bytes in letters of their own, a BPE or Unigram model of SentencePiece pieces, or WordPiece. */
#pragma once

#include "text/json.h"

enum hf_kind {
    HF_OTHER, /* none of these, or no tokenizer.json */
    HF_BYTE_LEVEL,
    HF_BYTE_FALLBACK, /* BPE of SentencePiece pieces; other characters are tokens of bytes: "<0x0A>" */
    HF_UNIGRAM,
    HF_WORDPIECE,
};

enum hf_kind hf_kind_of(const struct json *tokenizer);

/* Reports whether the text is a byte token: "<0x0A>". */
bool hf_is_byte(const char *text, size_t length);

/* Reports whether a step, or one of the steps in its list (such as "pretokenizers" or "decoders"), is of that type. */
bool hf_has_step(const struct json *step, const char *list, const char *type);

/* Reports whether a pre-tokenizer or normalizer puts U+2581 before a text. */
bool hf_adds_prefix(const struct json *tokenizer);
