/* Qwen3-Next and Qwen3-Coder-Next. conversion/qwen.py. */
#include "models/families/linear_attention.h"
#include "models/families/qwen/qwen.h"

/* Each key head's queries, keys, values and gates are adjacent. */
static const struct relation_row tensors[] = {
    {"model.layers.{}.linear_attn.in_proj_qkvz", "blk.{}.attn_qkv, blk.{}.attn_gate",
     "(group (half key_dim + share value_dim + share gate_dim)) c -> (half group key_dim + group share value_dim) c, "
     "(group share gate_dim) c",
     "group"},
    {"model.layers.{}.linear_attn.in_proj_ba", "blk.{}.ssm_ba", .parallel = "row"},
    {0},
};

static const struct config_row config_rows[] = {
    {"linear_value_head_dim", FROM_QUOTIENT, "ssm.inner_size", "ssm.time_step_rank"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {"attention_bias", FROM_TENSOR, "blk.3.attn_q.bias"},
    {"norm_topk_prob", FROM_TEXT, .text = "true"},
    {0},
};

const struct family qwen3next_family = {
    .name = "qwen3next",
    .summary = "Qwen3-Next, Qwen3-Coder-Next",
    .hf = FAMILY_NAMES({"Qwen3NextForCausalLM"}),
    .tensors = {tensors, gated_delta_tensors, plus_one_tensors, nextn_tensors, qwen_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen3NextForCausalLM", "qwen3_next", NULL, CONFIG_TABLES(silu_rows, config_rows)}),
    .keys = {base_keys, moe_keys, gated_delta_keys},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .add_dimensions = gated_delta_add_dimensions,
    .adjust = gated_delta_count_predicting,
    .rename = nextn_rename,
};
