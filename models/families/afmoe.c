/* Trinity. conversion/afmoe.py. */
#include "models/families/llama/llama.h"

static const struct relation_row tensors[] = {
    {"model.layers.{}.self_attn.gate_proj", "blk.{}.attn_gate", .parallel = "row"},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.pre_mlp_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.post_mlp_layernorm", "blk.{}.post_ffw_norm"},
    {"model.layers.{}.mlp.router.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.mlp.expert_bias", "blk.{}.exp_probs_b.bias"},
    {0},
};

static const struct key_row keys[] = {
    {"expert_shared_count", GGUF_U32, IF_PRESENT, "num_shared_experts"},
    {"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_intermediate_size"},
    {"leading_dense_block_count", GGUF_U32, IF_PRESENT, "num_dense_layers"},
    {"expert_weights_norm", GGUF_BOOL, IF_PRESENT, "route_norm"},
    {"expert_weights_scale", GGUF_F32, IF_PRESENT, "route_scale"},
    {"attention.sliding_window", GGUF_U32, IF_PRESENT, "sliding_window"},
    {0},
};

/* All released models scale their embeddings, and have the same layers with full attention. */
static const struct config_row config_rows[] = {
    {"global_attn_every_n_layers", FROM_TEXT, .text = "4"},
    {"mup_enabled", FROM_TEXT, .text = "true"},
    {0},
};

const struct family afmoe_family = {
    .name = "afmoe",
    .summary = "Trinity",
    .hf = FAMILY_NAMES({"AfmoeForCausalLM"}),
    .tensors = {tensors, qk_norm_tensors, expert_gate_first_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"AfmoeForCausalLM", "afmoe", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, num_experts_rows, config_rows)}),
    .keys = {base_keys, llama_keys, keys},
    LLAMA_VOCABS,
    .add_extras = add_rope_freqs,
};
