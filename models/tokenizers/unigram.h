/* What the Unigram vocabularies share: the keys that a SentencePiece model's normalizer becomes. */
#pragma once

#include "models/tokenizers/sentencepiece.h"

bool unigram_adds_prefix(const sentencepiece_model *model);
bool unigram_removes_spaces(const sentencepiece_model *model);

/* tokenizer.ggml.precompiled_charsmap, where there is one. */
void unigram_write_normalizer(struct gguf_kvs *kvs, const sentencepiece_model *model);
