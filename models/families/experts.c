#include "models/families/experts.h"

#define ROUTER_AND_SHARED                                                                                              \
    {"model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"},                                                               \
        {"model.layers.{}.mlp.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},                               \
        {"model.layers.{}.mlp.shared_experts.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},               \
        {"model.layers.{}.mlp.shared_experts.gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},                  \
    {                                                                                                                  \
        "model.layers.{}.mlp.shared_experts.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"                         \
    }

const struct relation_row experts_tensors[] = {
    {"model.layers.{}.mlp.experts.{expert}.down_proj", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.mlp.experts.{expert}.gate_proj", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.mlp.experts.{expert}.up_proj", "blk.{}.ffn_up_exps", .parallel = "row"},
    ROUTER_AND_SHARED,
    {0},
};

const struct relation_row experts_gate_first_tensors[] = {
    {"model.layers.{}.mlp.experts.{expert}.gate_proj", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.mlp.experts.{expert}.up_proj", "blk.{}.ffn_up_exps", .parallel = "row"},
    {"model.layers.{}.mlp.experts.{expert}.down_proj", "blk.{}.ffn_down_exps", .parallel = "column"},
    ROUTER_AND_SHARED,
    {0},
};
