/* Shared by the Unigram vocabularies: the keys for a SentencePiece model's normalizer. */
#pragma once

#include "models/tokenizers/sentencepiece.h"

bool unigram_adds_prefix(const sentencepiece_model *model);
bool unigram_removes_spaces(const sentencepiece_model *model);

/* Writes tokenizer.ggml.precompiled_charsmap if the model has it. */
void unigram_write_normalizer(struct gguf_kvs *kvs, const sentencepiece_model *model);
