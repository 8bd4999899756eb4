/* Arctic, of Snowflake: a dense MLP in parallel with experts. conversion/arctic.py. */
#include "models/families/llama/llama.h"

static const struct relation_row tensors[] = {
    {"model.layers.{}.residual_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm_exps"},
    {"model.layers.{}.residual_mlp.w1", "blk.{}.ffn_gate", .parallel = "row"},
    {"model.layers.{}.residual_mlp.w2", "blk.{}.ffn_down", .parallel = "column"},
    {"model.layers.{}.residual_mlp.w3", "blk.{}.ffn_up", .parallel = "row"},
    {0},
};

const struct family arctic_family = {
    .name = "arctic",
    .summary = "Arctic",
    .hf = FAMILY_NAMES({"ArcticForCausalLM"}),
    .tensors = {tensors, llama_tensors, sparse_moe_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
                             {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_hidden})},
    .vocabs = {&arctic_vocab},
};
