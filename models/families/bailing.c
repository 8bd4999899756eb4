/* Ling and Ring 1 and 2, the first two generations of Bailing, and Sarvam. conversion/bailingmoe.py. */
#include "models/families/drafts/nextn.h"
#include "quant/views/norms.h"

static const struct relation_row common_tensors[] = {
    {"model.word_embeddings", "token_embd", .parallel = "row"},
    {"model.layers.{}.attention.dense", "blk.{}.attn_output", .parallel = "column"},
    {0},
};

static const struct view *normalize(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                    const struct view *view)
{
    bool is_wanted =
        direction == FORWARD && view->rank == 2 && dimensions != NULL && dimensions_get(dimensions, "norm_head") != 0;
    return is_wanted ? view_normalize_columns(arena, view) : view;
}

static const struct elementwise over_norm = {
    .forward_text = "x / (norm of its column + 1e-7), where norm_head is said",
    .backward_text = "x",
    .apply = normalize,
    .is_one_way = true,
    .exactness = "norms do not come back; without norm_head the model is the same",
};

static const struct relation_row tensors2[] = {
    {"model.layers.{}.attention.query_key_value", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...",
     "head kv_head"},
    {"model.layers.{}.attention.query_layernorm", "blk.{}.attn_q_norm"},
    {"model.layers.{}.attention.key_layernorm", "blk.{}.attn_k_norm"},
    {"model.layers.{}.mlp.gate.expert_bias", "blk.{}.exp_probs_b.bias"},
    {"model.layers.{}.final_layernorm", "blk.{}.layer_output_norm"},
    {0},
};

static const struct view *center(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const struct view *view)
{
    const struct view *centered = direction == FORWARD ? view_less_mean(arena, view) : NULL;
    return centered != NULL ? centered : view;
}

static const struct elementwise minus_mean = {
    .forward_text = "x - mean",
    .backward_text = "x",
    .apply = center,
    .is_one_way = true,
    .exactness = "the mean does not come back: routers compare, so that it says nothing",
};

static const struct key_row keys[] = {
    {"rope.dimension_count", GGUF_U32, .compute = compute_head_dim},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_weights_scale", GGUF_F32, ALWAYS, .value = 1},
    {"expert_shared_count", GGUF_U32, REQUIRED, "num_shared_experts"},
    {"expert_weights_norm", GGUF_BOOL, REQUIRED, "norm_topk_prob"},
    {0},
};

static const struct key_row keys2[] = {
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary_of_half},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size", .by = "num_shared_experts"},
    {"expert_shared_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_shared_expert_intermediate_size"},
    {"expert_weights_scale", GGUF_F32, REQUIRED, "routed_scaling_factor"},
    {"expert_shared_count", GGUF_U32, REQUIRED, "num_shared_experts"},
    {"expert_weights_norm", GGUF_BOOL, REQUIRED, "norm_topk_prob"},
    {"nextn_predict_layers", GGUF_U32, IF_PRESENT, "num_nextn_predict_layers"},
    {0},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t head_dim = 0;
    if (!json_u64(hparams_get(hparams, "head_dim"), &head_dim) && dimensions_get(dimensions, "head") != 0)
        head_dim = dimensions_get(dimensions, "hidden") / dimensions_get(dimensions, "head");
    dimensions_set(dimensions, "pair", head_dim / 2);
}

static const struct config_row common_rows[] = {
    {"norm_head", FROM_TEXT, .text = "false"},
    {"use_bias", FROM_TENSOR, "blk.0.attn_output.bias"},
    {0},
};

static const struct config_row config2_rows[] = {
    {"use_qkv_bias", FROM_TENSOR, "blk.0.attn_qkv.bias"},
    {"use_qk_norm", FROM_TENSOR, "blk.0.attn_q_norm.weight"},
    {"moe_router_enable_expert_bias", FROM_TEXT, .text = "true"},
    {"score_function", .make = config_gating_function, .text = "'sigmoid'"},
    {"moe_shared_expert_intermediate_size", FROM_QUOTIENT, "expert_shared_feed_forward_length", "expert_shared_count"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {0},
};

const struct family bailingmoe_family = {
    .name = "bailingmoe",
    .summary = "Ling, Ring",
    .hf = FAMILY_NAMES({"BailingMoeForCausalLM"}),
    .tensors = {TENSORS({"lm_head", "output", .parallel = "row", .map = &over_norm},
                        {"model.layers.{}.attention.query_key_value", "blk.{}.attn_q, blk.{}.attn_k, blk.{}.attn_v",
                         "(query head half pair + key kv_head half pair + value kv_head half pair) ... -> "
                         "(query head pair half) ..., (key kv_head pair half) ..., (value kv_head half pair) ...",
                         "head kv_head"}),
                common_tensors, expert_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"BailingMoeForCausalLM", "bailing_moe", NULL,
                           CONFIG_TABLES(silu_rows, num_experts_rows, common_rows,
                                         CONFIG_ROWS({"use_qkv_bias", FROM_TENSOR, "blk.0.attn_q.bias"})),
                           OWN_CLASS_NOTE}),
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {qkv_dimensions, DIMENSIONS({"norm_head", "norm_head"})},
    .add_dimensions = add_dimensions,
};

const struct family bailingmoe2_family = {
    .name = "bailingmoe2",
    .summary = "Ling 2, Ring 2",
    .hf = FAMILY_NAMES({"BailingMoeV2ForCausalLM"}),
    .tensors = {tensors2, common_tensors, nextn_tensors, expert_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"BailingMoeV2ForCausalLM", "bailing_moe_v2", NULL,
                           CONFIG_TABLES(silu_rows, num_experts_rows, common_rows, config2_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, keys2},
    .vocabs = {&bpe_vocab},
    .add_dimensions = nextn_add_dimensions,
    .adjust = nextn_count_blocks,
};

const struct family sarvam_family = {
    .name = "sarvam",
    .architecture = "bailingmoe2",
    .summary = "Sarvam",
    .hf = FAMILY_NAMES({"SarvamMoEForCausalLM"}, {"modeling_sarvam_moe.SarvamMoEForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.mlp.gate.expert_bias", "blk.{}.exp_probs_b.bias", .map = &minus_mean}),
                tensors2, common_tensors, nextn_tensors, expert_tensors, router_tensors, decoder_tensors},
    .keys = {base_keys, keys2, KEYS({"rope.dimension_count", GGUF_U32, .compute = compute_head_dim})},
    .vocabs = {&bpe_vocab},
    .add_dimensions = nextn_add_dimensions,
    .adjust = nextn_count_blocks,
};
