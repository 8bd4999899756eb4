/* Phi 3.5 with experts. conversion/phi.py, PhiMoeModel. */
#include "models/families/phi3.h"

static const struct family_name names[] = {{"PhiMoEForCausalLM"}, {0}};

static const struct relation_row tensors[] = {
    {"model.layers.{}.block_sparse_moe.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.block_sparse_moe.experts.{expert}.w1", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.block_sparse_moe.experts.{expert}.w2", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.block_sparse_moe.experts.{expert}.w3", "blk.{}.ffn_up_exps", .parallel = "row"},
    {0},
};

static const struct key_row keys[] = {
    {"expert_used_count", GGUF_U32, REQUIRED, "num_experts_per_tok"},
    {"expert_count", GGUF_U32, REQUIRED, "num_local_experts"},
    {0},
};

const struct family phimoe_family = {
    .name = "phimoe",
    .summary = "Phi 3.5 with experts",
    .hf = names,
    .tensors = {tensors, decoder_tensors},
    .keys = {phi3_keys, keys},
    .vocabs = {&phi3_vocab, &bpe_vocab},
    .add_extras = phi3_add_rope_factors,
};
