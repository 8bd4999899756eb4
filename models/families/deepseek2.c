/* DeepSeek V2 and V3: multi-head latent attention, shared experts. conversion/deepseek.py. */
#include "models/families/family.h"
#include "models/tensors.h"

#include <string.h>

static const struct family_name names[] = {{"DeepseekV2ForCausalLM"}, {"DeepseekV3ForCausalLM"}, {0}};

static const struct tensor_row tensors[] = {
    {"model.layers.{}.self_attn.q_a_proj", "blk.{}.attn_q_a"},
    {"model.layers.{}.self_attn.q_a_layernorm", "blk.{}.attn_q_a_norm"},
    {"model.layers.{}.self_attn.q_b_proj", "blk.{}.attn_q_b"},
    {"model.layers.{}.self_attn.kv_a_proj_with_mqa", "blk.{}.attn_kv_a_mqa"},
    {"model.layers.{}.self_attn.kv_a_layernorm", "blk.{}.attn_kv_a_norm"},
    {"model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_k_b", MLA_KEYS},
    {"model.layers.{}.self_attn.kv_b_proj", "blk.{}.attn_v_b", MLA_VALUES},
    {"model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.mlp.gate.e_score_correction", "blk.{}.exp_probs_b"},
    {"model.layers.{}.mlp.experts.{}.down_proj", "blk.{}.ffn_down_exps", ONE_EXPERT},
    {"model.layers.{}.mlp.experts.{}.gate_proj", "blk.{}.ffn_gate_exps", ONE_EXPERT},
    {"model.layers.{}.mlp.experts.{}.up_proj", "blk.{}.ffn_up_exps", ONE_EXPERT},
    {"model.layers.{}.mlp.shared_experts.down_proj", "blk.{}.ffn_down_shexp"},
    {"model.layers.{}.mlp.shared_experts.gate_proj", "blk.{}.ffn_gate_shexp"},
    {"model.layers.{}.mlp.shared_experts.up_proj", "blk.{}.ffn_up_shexp"},
    {0},
};

/* Without first_k_dense_replace, all layers are dense where there are no experts, and none where there are. */
static bool compute_dense_layers(const struct synthesis *synthesis, double *ret_value, struct error *error)
{
    bool has_experts = synthesis->dimensions.n_experts != 0;
    return synthesis_number(synthesis, "first_k_dense_replace", has_experts ? 0 : (double)synthesis->dimensions.n_blocks,
                            ret_value, error);
}

static bool add_up(const struct synthesis *synthesis, const char *a, const char *b, double *ret_value, struct error *error)
{
    double first, second;
    if (!synthesis_number(synthesis, a, -1, &first, error) || !synthesis_number(synthesis, b, -1, &second, error))
        return false;
    if (first < 0 || second < 0)
        return error_set(error, "config.json: %s is missing", first < 0 ? a : b);
    *ret_value = first + second;
    return true;
}

static bool compute_key_length(const struct synthesis *synthesis, double *ret_value, struct error *error)
{
    return add_up(synthesis, "kv_lora_rank", "qk_rope_head_dim", ret_value, error);
}

static bool compute_mla_key_length(const struct synthesis *synthesis, double *ret_value, struct error *error)
{
    return add_up(synthesis, "qk_nope_head_dim", "qk_rope_head_dim", ret_value, error);
}

/* Attention is written as what it becomes after absorption: all queries share one key. */
static const struct key_row keys[] = {
    {"attention.head_count_kv", GGUF_U32, ALWAYS, .value = 1},
    {"leading_dense_block_count", GGUF_U32, .compute = compute_dense_layers},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"attention.q_lora_rank", GGUF_U32, IF_PRESENT, "q_lora_rank"},
    {"attention.kv_lora_rank", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.key_length", GGUF_U32, .compute = compute_key_length},
    {"attention.value_length", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.key_length_mla", GGUF_U32, .compute = compute_mla_key_length},
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

/* Left out: the layers that predict more than one token, and an output that is the embedding. */
static const char *rename_tensor(const struct synthesis *synthesis, const char *name)
{
    uint64_t numbers[2];
    if (pattern_match("model.layers.{}.*", name, strlen(name), numbers) && numbers[0] >= synthesis->dimensions.n_blocks)
        return NULL;
    if (json_bool(hparams_get(synthesis->model->hparams, "tie_word_embeddings"), false) && strcmp(name, "lm_head.weight") == 0)
        return NULL;
    return name;
}

const struct family deepseek2_family = {
    .name = "deepseek2",
    .summary = "DeepSeek V2 and V3",
    .hf = names,
    .tensors = {tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .rename = rename_tensor,
};
