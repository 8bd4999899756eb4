/* Qwen3-Next and Qwen3-Coder-Next. conversion/qwen.py. */
#include "models/families/gated_delta.h"
#include "models/families/qwen.h"

static const struct family_name names[] = {{"Qwen3NextForCausalLM"}, {0}};

/* Each key head's queries, keys, values and gates lie together. */
static const struct relation_row tensors[] = {
    {"model.layers.{}.linear_attn.in_proj_qkvz", "blk.{}.attn_qkv, blk.{}.attn_gate",
     "(group (half key_dim + share value_dim + share gate_dim)) c -> (half group key_dim + group share value_dim) c, "
     "(group share gate_dim) c",
     "group"},
    {"model.layers.{}.linear_attn.in_proj_ba", "blk.{}.ssm_ba", .parallel = "row"},
    {0},
};

const struct family qwen3next_family = {
    .name = "qwen3next",
    .summary = "Qwen3-Next, Qwen3-Coder-Next",
    .hf = names,
    .tensors = {tensors, gated_delta_tensors, nextn_tensors, qwen_moe_tensors, decoder_tensors},
    .keys = {base_keys, moe_keys, gated_delta_keys},
    .vocabs = {&bpe_vocab},
    .add_facts = gated_delta_add_facts,
    .adjust = gated_delta_count_predicting,
    .rename = nextn_rename,
};
