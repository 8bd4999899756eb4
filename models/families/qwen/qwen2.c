/* Qwen 1.5, 2 and 2.5. conversion/qwen.py. */
#include "models/families/qwen/qwen.h"

/* Korean Open Reasoning Model's names of the norms */
static const struct relation_row tensors[] = {
    {"model.layers.{}.pre_attention_layernorm", "blk.{}.attn_norm", .forward_only = true},
    {"model.layers.{}.pre_mlp_layernorm", "blk.{}.ffn_norm", .forward_only = true},
    {0},
};

static const struct config_row config_rows[] = {
    {"use_sliding_window", FROM_TEXT, .text = "false"},
    {0},
};

const struct config_form qwen2_half_forms[] = {
    {"Qwen2ForCausalLM", "qwen2", NULL, CONFIG_TABLES(silu_rows, config_rows), HALF_NOTE},
    {0},
};

const struct family qwen2_family = {
    .name = "qwen2",
    .summary = "Qwen 1.5, 2 and 2.5",
    .hf = FAMILY_NAMES({"Qwen2ForCausalLM"}, {"Qwen2Model", "model."}, {"Qwen2AudioForConditionalGeneration"},
                       {"AudioFlamingo3ForConditionalGeneration"}, {"DotsOCRForCausalLM"}, {"KORMoForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen2ForCausalLM", "qwen2", NULL, CONFIG_TABLES(silu_rows, config_rows)}),
    .keys = {base_keys, KEYS({.emit = emit_pooling_type})},
    .vocabs = {&spm_vocab, &bpe_vocab},
};
