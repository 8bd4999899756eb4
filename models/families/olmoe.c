/* OLMoE. conversion/olmo.py. */
#include "models/families/shared.h"

static const struct relation_row tensors[] = {
    {"model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm"},
    {"model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm"},
    {"model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.mlp.experts.{expert}.down_proj", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.mlp.experts.{expert}.gate_proj", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.mlp.experts.{expert}.up_proj", "blk.{}.ffn_up_exps", .parallel = "row"},
    {0},
};

static const struct config_row config_rows[] = {
    {"norm_topk_prob", FROM_TEXT, .text = "false"},
    {"clip_qkv", FROM_TEXT, .text = "null"},
    {0},
};

const struct family olmoe_family = {
    .name = "olmoe",
    .summary = "OLMoE",
    .hf = FAMILY_NAMES({"OlmoeForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms =
        CONFIG_FORMS({"OlmoeForCausalLM", "olmoe", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows, config_rows)}),
    .keys = {base_keys, KEYS({"attention.layer_norm_rms_epsilon", GGUF_F32, ALWAYS, .value = 1e-5})},
    .vocabs = {&bpe_vocab},
};
