/* Unigram vocabularies of a tokenizer.json: "t5". The pieces have the ids and scores of SentencePiece's model.
 *
 * Source: llama-vocab.cpp (llm_tokenizer_ugm) of llama.cpp; XLMRobertaModel of conversion/bert.py; tokenizers' unigram.
 */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"

bool hf_unigram_fits(const struct json *tokenizer);

/* Sets the pieces: text, score, and whether they are unknown, control or added. */
void hf_unigram_set(struct token_list *list, const struct hf_vocabulary *vocabulary);

/* Writes tokenizer.ggml.precompiled_charsmap, of the step of the normalizer that has one. */
void hf_unigram_write_normalizer(struct gguf_kvs *kvs, const struct json *tokenizer);

/* Reports whether runs of spaces count as one. */
bool hf_unigram_removes_spaces(const struct json *tokenizer);
