/* Qwen 3 with experts. conversion/qwen.py. */
#include "models/families/qwen.h"

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'silu'"},
    {"head_dim", FROM_KEY, "attention.key_length"},
    {"decoder_sparse_step", FROM_TEXT, .text = "1"},
    {"mlp_only_layers", FROM_TEXT, .text = "[]"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"norm_topk_prob", FROM_TEXT, .text = "true"},
    {0},
};

const struct config_form qwen3moe_half_forms[] = {
    {"Qwen3MoeForCausalLM", "qwen3_moe", NULL, config_rows, QWEN_HALF_NOTE},
    {0},
};

const struct family qwen3moe_family = {
    .name = "qwen3moe",
    .summary = "Qwen 3 MoE",
    .hf = FAMILY_NAMES({"Qwen3MoeForCausalLM"}),
    .tensors = {qwen3_tensors, qwen_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen3MoeForCausalLM", "qwen3_moe", NULL, config_rows}),
    .keys = {base_keys, moe_keys},
    .vocabs = {&bpe_vocab},
};
