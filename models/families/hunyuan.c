/* Hunyuan, dense and with experts, and Hy3. conversion/hunyuan.py. */
#include "models/families/drafts/nextn.h"
#include "models/families/qwen/qwen.h"

#include <math.h>
#include <string.h>

static const struct relation_row tensors[] = {
    {"lm_head", NULL, .when = "tie_word_embeddings"},
    {"model.layers.{}.self_attn.query_layernorm", "blk.{}.attn_q_norm"},
    {"model.layers.{}.self_attn.key_layernorm", "blk.{}.attn_k_norm"},
    {0},
};

static const struct relation_row shared_mlp_tensors[] = {
    {"model.layers.{}.mlp.gate.wg", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.mlp.shared_mlp.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {"model.layers.{}.mlp.shared_mlp.gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {"model.layers.{}.mlp.shared_mlp.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {0},
};

static const struct relation_row hy3_tensors[] = {
    {"model.layers.{}.mlp.router.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.mlp.expert_bias", "blk.{}.exp_probs_b"},
    {"model.layers.{}.final_layernorm", "blk.{}.nextn.shared_head_norm"},
    {0},
};

/* Applies dynamic scaling to the base of the rope once, for the longest context. */
static bool scale_rope(struct model_builder *builder, double head_dim, double otherwise, struct error *error)
{
    enum { CONTEXT = 262144 };
    struct gguf_kvs *kvs = &builder->model->kvs;
    const char *type = json_string(hparams_rope(builder->model->hparams, "rope_type"), NULL);
    bool is_dynamic = type != NULL && strcmp(type, "dynamic") == 0;
    double theta, alpha;
    if (!is_dynamic && (type == NULL || strcmp(type, "xdrope") != 0))
        return true;
    if (!builder_number(builder, "rope.alpha", otherwise, &alpha, error) ||
        !builder_number(builder, "rope.rope_theta", 10000, &theta, error))
        return false;
    gguf_set_f32(kvs, builder_key(builder, "rope.freq_base"), theta * pow(alpha, head_dim / (head_dim - 2)));
    gguf_set_text(kvs, builder_key(builder, "rope.scaling.type"), "none");
    gguf_set_f32(kvs, builder_key(builder, "rope.scaling.factor"), 1);
    if (is_dynamic) {
        gguf_set_u32(kvs, builder_key(builder, "rope.scaling.original_context_length"), CONTEXT);
        gguf_set_u32(kvs, builder_key(builder, "context_length"), CONTEXT);
    }
    return true;
}

static bool emit_rope(struct model_builder *builder, struct error *error)
{
    const double alpha = 50;
    double head_dim;
    gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "expert_count"));
    return compute_head_dim(builder, &head_dim, error) && scale_rope(builder, head_dim, alpha, error);
}

/* Sets the vision model's rope: four positions turn listed shares of the dimensions; newer releases of transformers
 * call that dynamic, too. */
static bool emit_vl_rope(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {
        {"rope.freq_base", GGUF_F32, REQUIRED, "rope.rope_theta"},
        {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
        {"rope.scaling.factor", GGUF_F32, OR_DEFAULT, "rope.factor", 1},
        {"rope.scaling.alpha", GGUF_F32, REQUIRED, "rope.alpha"},
        {"rope.scaling.original_context_length", GGUF_U32, REQUIRED, "max_position_embeddings"},
        {"context_length", GGUF_U32, REQUIRED, "max_position_embeddings"},
        {0},
    };
    const struct json *type = hparams_rope(builder->model->hparams, "rope_type");
    bool is_renamed = json_string_is(type, "dynamic") && hparams_rope(builder->model->hparams, "mrope_section") != NULL;
    const struct key_row section[] = {
        {"rope.dimension_sections", GGUF_U32, REQUIRED, is_renamed ? "rope.mrope_section" : "rope.xdrope_section"},
        {0}};
    if (!is_renamed && !json_string_is(type, "xdrope"))
        return emit_rope(builder, error);
    gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "expert_count"));
    return builder_emit(builder, rows, error) && builder_emit(builder, section, error);
}

static bool emit_moe_rope(struct model_builder *builder, struct error *error)
{
    const double alpha = 1000, head_dim = 128;
    return scale_rope(builder, head_dim, alpha, error);
}

/* Sets a number that may be a list with the same number for each layer. */
static bool emit_count(struct model_builder *builder, const char *key, const char *from, struct error *error)
{
    const struct json *value = hparams_get(builder->model->hparams, from);
    uint64_t count;
    if (!json_u64(json_is(value, JSON_ARRAY) ? json_first(value) : value, &count) || count > UINT32_MAX)
        return error_set(error, "config.json: %s is missing, or not a whole number of 32 bits", from);
    gguf_set_u32(&builder->model->kvs, builder_key(builder, key), (uint32_t)count);
    return true;
}

static bool emit_experts(struct model_builder *builder, struct error *error)
{
    return emit_count(builder, "expert_feed_forward_length", "moe_intermediate_size", error) &&
           emit_count(builder, "expert_used_count", "moe_topk", error) &&
           emit_count(builder, "expert_shared_count", "num_shared_expert", error);
}

static const struct key_row hy3_keys[] = {
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size", .by = "num_shared_experts",
     .otherwise = 1},
    {"expert_weights_norm", GGUF_BOOL, OR_DEFAULT, "route_norm", 1},
    {"expert_weights_scale", GGUF_F32, OR_DEFAULT, "router_scaling_factor", 1},
    {"expert_gating_func", GGUF_U32, ALWAYS, .value = 2}, /* sigmoid */
    {.emit = nextn_emit},
    {0},
};

static const struct config_row config_moe_rows[] = {
    {"moe_topk", FROM_KEY, "expert_used_count"},
    {"moe_intermediate_size", FROM_KEY, "expert_feed_forward_length"},
    {"num_shared_expert", FROM_KEY, "expert_shared_count"},
    {"num_experts_per_tok", FROM_NOWHERE},
    {0},
};

static const struct config_row config_hy3_rows[] = {
    {"num_shared_experts", FROM_QUOTIENT, "expert_shared_feed_forward_length", "expert_feed_forward_length"},
    {"mlp_layer_types", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "'sparse'|'dense'"},
    {0},
};

const struct family hunyuan_dense_family = {
    .name = "hunyuan-dense",
    .summary = "Hunyuan, dense",
    .hf = FAMILY_NAMES({"HunYuanDenseV1ForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", NULL, CONFIG_TABLES(silu_rows, attention_bias_rows)}),
    .keys = {base_keys, KEYS({.emit = emit_rope})},
    .vocabs = {&hunyuan_vocab, &hunyuan_ranks_vocab},
    .dimensions = {DIMENSIONS({"expert"})},
};

const struct family hunyuan_vl_family = {
    .name = "hunyuan-vl",
    .architecture = "hunyuan_vl",
    .summary = "HunyuanOCR and similar models (language model)",
    .hf = FAMILY_NAMES({"HunYuanVLForConditionalGeneration"}),
    .tensors = {tensors, decoder_tensors},
    .keys = {base_keys, KEYS({.emit = emit_vl_rope})},
    .vocabs = {&hunyuan_vocab, &hunyuan_ranks_vocab},
    .dimensions = {DIMENSIONS({"expert"})},
};

const struct family hunyuan_moe_family = {
    .name = "hunyuan-moe",
    .summary = "Hunyuan MoE",
    .hf = FAMILY_NAMES({"HunYuanMoEV1ForCausalLM"}),
    .tensors = {tensors, shared_mlp_tensors, expert_tensors, router_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, config_moe_rows)}),
    .keys = {base_keys, KEYS({"expert_shared_feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
                             {.emit = emit_experts}, {.emit = emit_moe_rope})},
    .vocabs = {&hunyuan_moe_ranks_vocab, &bpe_vocab},
};

const struct family hy_v3_family = {
    .name = "hy_v3",
    .summary = "Hy3",
    .hf = FAMILY_NAMES({"HYV3ForCausalLM"}),
    .tensors = {hy3_tensors, shared_mlp_tensors, qk_norm_tensors, nextn_tensors, qwen_moe_tensors, decoder_tensors},
    .forms =
        CONFIG_FORMS({"HYV3ForCausalLM", "hy_v3", NULL,
                      CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows, num_experts_rows, config_hy3_rows)}),
    .keys = {base_keys, hy3_keys},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .add_dimensions = nextn_add_dimensions,
    .adjust = nextn_count_blocks,
};
