/* Multi-head latent attention, and the experts and keys of DeepSeek V2 and its successors. conversion/deepseek.py. */
#include "models/families/deepseek/deepseek.h"

const struct relation_row mla_tensors[] = {
    {"model.layers.{}.self_attn.q_a_proj", "blk.{}.attn_q_a"},
    {"model.layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm"},
    {"model.layers.{}.self_attn.q_b_proj", "blk.{}.attn_q_b", "(head d) ...", "head"},
    {"model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"},
    {"model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"},
    {"model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_k_b, blk.{}.attn_v_b",
     "(kv_head (nope + value)) c -> kv_head c nope, kv_head value c", "kv_head"},
    {"model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_kv_b", .backward_only = true}, /* until April 2025 */
    {0},
};

bool deepseek_dense_layers(const struct model_builder *builder, double *ret_value, struct error *error)
{
    bool has_experts = dimensions_get(&builder->dimensions, "expert") != 0;
    return builder_number(builder, "first_k_dense_replace", has_experts ? 0 : (double)builder->dimensions.n_layers,
                          ret_value, error);
}

/* After absorption, all queries share one key, whatever config.json says. */
static bool share_keys(struct model_builder *builder, struct error *error)
{
    return hparams_override(builder->model->hparams, "num_key_value_heads", 1, error);
}

const struct key_row mla_first_keys[] = {{.emit = share_keys}, {0}};

const struct key_row mla_keys[] = {
    {"leading_dense_block_count", GGUF_U32, .compute = deepseek_dense_layers},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"attention.q_lora_rank", GGUF_U32, IF_PRESENT, "q_lora_rank"},
    {"attention.kv_lora_rank", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.key_length", GGUF_U32, REQUIRED, "kv_lora_rank", .plus = "qk_rope_head_dim"},
    {"attention.value_length", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.key_length_mla", GGUF_U32, REQUIRED, "qk_nope_head_dim", .plus = "qk_rope_head_dim"},
    {"attention.value_length_mla", GGUF_U32, REQUIRED, "v_head_dim"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size|intermediate_size"},
    {"expert_count", GGUF_U32, IF_PRESENT, "n_routed_experts"},
    {"expert_shared_count", GGUF_U32, OR_DEFAULT, "n_shared_experts", 0},
    {"expert_weights_scale", GGUF_F32, IF_PRESENT, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, IF_TRUE, "norm_topk_prob"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim"},
    {"rope.scaling.yarn_log_multiplier", GGUF_F32, IF_PRESENT, "rope.mscale_all_dim", .times = 0.1},
    {0},
};

/* Both are 0 if unknown, so that they do not count as halves. */
const struct dimension_row mla_dimensions[] = {{"nope", "qk_nope_head_dim"}, {"value", "v_head_dim"}, {0}};

const struct config_row deepseek_config_rows[] = {
    {"num_key_value_heads", FROM_KEY, "attention.head_count"},
    {"q_lora_rank", FROM_KEY, "attention.q_lora_rank", .text = "null"},
    {"kv_lora_rank", FROM_KEY, "attention.kv_lora_rank"},
    {"qk_rope_head_dim", FROM_KEY, "rope.dimension_count"},
    {"qk_nope_head_dim", FROM_DIFFERENCE, "attention.key_length", "rope.dimension_count"},
    {"qk_nope_head_dim", FROM_DIFFERENCE, "attention.key_length_mla", "rope.dimension_count"},
    {"v_head_dim", FROM_KEY, "attention.value_length"},
    {"v_head_dim", FROM_KEY, "attention.value_length_mla"},
    {"first_k_dense_replace", FROM_KEY, "leading_dense_block_count"},
    {"norm_topk_prob", FROM_KEY, "expert_weights_norm", .text = "false"},
    {"moe_layer_freq", FROM_TEXT, .text = "1"},
    {0},
};
