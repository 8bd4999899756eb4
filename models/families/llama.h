/* What the families built on Llama's take from it. */
#pragma once

#include "models/families/family.h"

extern const struct relation_row llama_tensors[];
extern const struct key_row llama_keys[];

/* Whether it is EAGLE-3, a draft model, which may call itself Llama. */
bool llama_is_eagle3(const struct hparams *hparams);

/* tokenizer.ggml.add_space_prefix, where tokenizer_config.json says it. */
bool llama_before_vocab(struct draft *draft, const struct vocab_input *input, struct error *error);

/* What the sizes of the vocabularies of CodeLlama and of small Granite models stand for. */
bool llama_after_vocab(struct draft *draft, const struct vocab_input *input, struct error *error);
