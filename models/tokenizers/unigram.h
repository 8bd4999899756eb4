/* Unigram vocabularies, "t5": what SentencePiece's model says of them, and tokenizer.json, whose pieces have the ids
 * and scores of that model.
 *
 * Source: llama-vocab.cpp (llm_tokenizer_ugm) of llama.cpp; XLMRobertaModel of conversion/bert.py; tokenizers' unigram.
 */
#pragma once

#include "models/tokenizers/hf_vocabulary.h"
#include "models/tokenizers/sentencepiece.h"

bool unigram_adds_prefix(const sentencepiece_model *model);
bool unigram_removes_spaces(const sentencepiece_model *model);

/* Writes tokenizer.ggml.precompiled_charsmap if the model has it. */
void unigram_write_normalizer(struct gguf_kvs *kvs, const sentencepiece_model *model);

bool hf_unigram_fits(const struct json *tokenizer);

/* Sets the pieces: text, score, and whether they are unknown, control or added. */
void hf_unigram_set(struct token_list *list, const struct hf_vocabulary *vocabulary);

/* Writes tokenizer.ggml.precompiled_charsmap, of the step of the normalizer that has one. */
void hf_unigram_write_normalizer(struct gguf_kvs *kvs, const struct json *tokenizer);

/* Reports whether runs of spaces count as one. */
bool hf_unigram_removes_spaces(const struct json *tokenizer);
