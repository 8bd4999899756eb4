/* Shared by the families built on Llama's. */
#pragma once

#include "models/families/shared.h"

extern const struct relation_row llama_tensors[];
extern const struct key_row llama_keys[];
extern const struct dimension_row llama_dimensions[]; /* heads as modify_tensors() of Llama's class looks for them */

/* Reports whether a model is EAGLE-3, a draft model, which may have Llama's class. */
bool llama_is_eagle3(const struct hparams *hparams);

/* Sets tokenizer.ggml.add_space_prefix if tokenizer_config.json has add_prefix_space. */
bool llama_before_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error);

/* Adds keys for CodeLlama and small Granite models, which are known by the sizes of their vocabularies. */
bool llama_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error);

/* The tokenizers of Llama and the keys around them. */
#define LLAMA_VOCABS                                                                                                   \
    .vocabs = {&spm_vocab, &llama_hf_vocab, &bpe_vocab}, .before_vocab = llama_before_vocab,                           \
    .after_vocab = llama_after_vocab
