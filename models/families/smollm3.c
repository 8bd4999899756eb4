/* SmolLM 3: conversion/llama.py's tensors and keys under another architecture. */
#include "models/families/llama/llama.h"

const struct family smollm3_family = {
    .name = "smollm3",
    .summary = "SmolLM 3",
    .hf = FAMILY_NAMES({"SmolLM3ForCausalLM"}),
    .tensors = {llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"SmolLM3ForCausalLM", "smollm3", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows)}),
    .keys = {base_keys, llama_keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
};
