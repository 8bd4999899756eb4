/* Qwen 3 with experts. conversion/qwen.py. */
#include "models/families/qwen/qwen.h"

static const struct config_row config_rows[] = {
    {"decoder_sparse_step", FROM_TEXT, .text = "1"},
    {"mlp_only_layers", FROM_TEXT, .text = "[]"},
    {"norm_topk_prob", FROM_TEXT, .text = "true"},
    {0},
};

const struct config_form qwen3moe_half_forms[] = {
    {"Qwen3MoeForCausalLM", "qwen3_moe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, config_rows), HALF_NOTE},
    {0},
};

const struct family qwen3moe_family = {
    .name = "qwen3moe",
    .summary = "Qwen 3 MoE",
    .hf = FAMILY_NAMES({"Qwen3MoeForCausalLM"}),
    .tensors = {qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"Qwen3MoeForCausalLM", "qwen3_moe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, config_rows)}),
    .keys = {base_keys, moe_keys},
    .vocabs = {&bpe_vocab},
};
