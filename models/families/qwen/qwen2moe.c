/* Qwen 1.5 and 2 with experts; Qwen 3 shares the rows for experts. conversion/qwen.py. */
#include "models/families/qwen/qwen.h"

const struct relation_row qwen_moe_tensors[] = {
    {"model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.mlp.experts.{expert}.down_proj", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.mlp.experts.{expert}.gate_proj", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.mlp.experts.{expert}.up_proj", "blk.{}.ffn_up_exps", .parallel = "row"},
    /* as newer releases of transformers store them */
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", .parallel = "column",
     .forward_only = true},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight, blk.{}.ffn_up_exps.weight", GATE_UP,
     "gate up", .forward_only = true},
    {"model.layers.{}.mlp.shared_expert_gate", "blk.{}.ffn_gate_inp_shexp", "one c"},
    {"model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {"model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {"model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {0},
};

static const struct config_row config_rows[] = {
    {"decoder_sparse_step", FROM_TEXT, .text = "1"},
    {"mlp_only_layers", FROM_TEXT, .text = "[]"},
    {"norm_topk_prob", FROM_TEXT, .text = "false"},
    {0},
};

const struct family qwen2moe_family = {
    .name = "qwen2moe",
    .summary = "Qwen 1.5 and 2 MoE",
    .hf = FAMILY_NAMES({"Qwen2MoeForCausalLM"}),
    .tensors = {qwen_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen2MoeForCausalLM", "qwen2_moe", NULL, CONFIG_TABLES(silu_rows, config_rows)}),
    .keys = {base_keys, moe_keys},
    .vocabs = {&bpe_vocab},
};
