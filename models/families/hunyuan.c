/* The Hunyuan families. */
#include "models/families/deepseek/deepseek.h"
#include "models/families/drafts/nextn.h"
#include "models/families/layers.h"
#include "models/families/qwen/qwen.h"
#include "text/json_write.h"

#include <math.h>
#include <string.h>

/* Hunyuan, dense and with experts, and Hy3. conversion/hunyuan.py. */

static const struct relation_row hunyuan_tensors[] = {
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
    .tensors = {hunyuan_tensors, decoder_tensors},
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
    .tensors = {hunyuan_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({.emit = emit_vl_rope})},
    .vocabs = {&hunyuan_vocab, &hunyuan_ranks_vocab},
    .dimensions = {DIMENSIONS({"expert"})},
};

const struct family hunyuan_moe_family = {
    .name = "hunyuan-moe",
    .summary = "Hunyuan MoE",
    .hf = FAMILY_NAMES({"HunYuanMoEV1ForCausalLM"}),
    .tensors = {hunyuan_tensors, shared_mlp_tensors, expert_tensors, router_tensors, decoder_tensors},
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

/* Hunyuan 4: DeepSeek's latent attention with a gate and a sink, indexers in some layers, hyper-connections.
 * conversion/hy_v4.py. */

#define ATTENTION "model.layers.{}.self_attn."

static const struct relation_row hy_v4_tensors[] = {
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {"model.mtp_layers.*", NULL},
    {ATTENTION "linear_gate", "blk.{}.attn_gate", .parallel = "row"},
    {ATTENTION "learnable_sink_param", "blk.{}.attn_sinks.weight", .parallel = "row"},
    {ATTENTION "indexer.wq_b", "blk.{}.indexer.attn_q_b"},
    {ATTENTION "indexer.wk", "blk.{}.indexer.attn_k"},
    {ATTENTION "indexer.k_norm", "blk.{}.indexer.k_norm"},
    {ATTENTION "indexer.weights_proj", "blk.{}.indexer.proj"},
    {"model.layers.{}.hc_attn_layer.hc_pre.hc_fn", "blk.{}.hc_attn_fn.weight"},
    {"model.layers.{}.hc_attn_layer.hc_pre.hc_base", "blk.{}.hc_attn_base.weight"},
    {"model.layers.{}.hc_attn_layer.hc_pre.hc_scale", "blk.{}.hc_attn_scale.weight"},
    {"model.layers.{}.hc_mlp_layer.hc_pre.hc_fn", "blk.{}.hc_ffn_fn.weight"},
    {"model.layers.{}.hc_mlp_layer.hc_pre.hc_base", "blk.{}.hc_ffn_base.weight"},
    {"model.layers.{}.hc_mlp_layer.hc_pre.hc_scale", "blk.{}.hc_ffn_scale.weight"},
    {"model.hc_head.hc_head_fn", "output_hc_fn.weight"},
    {"model.hc_head.hc_head_base", "output_hc_base.weight"},
    {"model.hc_head.hc_head_scale", "output_hc_scale.weight"},
    /* as transformers 5 saves them: its renaming for that is not the reverse of the one for loading */
    {"model.layers.{}.hc_pre.hc_attn_layer.hc_fn", "blk.{}.hc_attn_fn.weight", .forward_only = true},
    {"model.layers.{}.hc_pre.hc_attn_layer.hc_base", "blk.{}.hc_attn_base.weight", .forward_only = true},
    {"model.layers.{}.hc_pre.hc_attn_layer.hc_scale", "blk.{}.hc_attn_scale.weight", .forward_only = true},
    {"model.layers.{}.hc_pre.hc_mlp_layer.hc_fn", "blk.{}.hc_ffn_fn.weight", .forward_only = true},
    {"model.layers.{}.hc_pre.hc_mlp_layer.hc_base", "blk.{}.hc_ffn_base.weight", .forward_only = true},
    {"model.layers.{}.hc_pre.hc_mlp_layer.hc_scale", "blk.{}.hc_ffn_scale.weight", .forward_only = true},
    {"model.hc_pre.hc_head.hc_head_fn", "output_hc_fn.weight", .forward_only = true},
    {"model.hc_pre.hc_head.hc_head_base", "output_hc_base.weight", .forward_only = true},
    {"model.hc_pre.hc_head.hc_head_scale", "output_hc_scale.weight", .forward_only = true},
    {"model.layers.{}.mlp.linear_gate", "blk.{}.ffn_gate", .parallel = "row", .forward_only = true},
    {"model.layers.{}.mlp.shared_experts.linear_gate", "blk.{}.ffn_gate_shexp", .parallel = "row",
     .forward_only = true},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight, blk.{}.ffn_up_exps.weight", GATE_UP,
     "gate up"},
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", .parallel = "column"},
    {0},
};

/* Removes the groups of experts if there is one. */
static bool forget_groups(struct model_builder *builder, struct error *error)
{
    double n_groups, n_used;
    if (!builder_number(builder, "n_group", 0, &n_groups, error) ||
        !builder_number(builder, "topk_group", 0, &n_used, error))
        return false;
    if (n_groups == 1 && n_used == 1) {
        gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "expert_group_count"));
        gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "expert_group_used_count"));
    }
    return true;
}

static bool emit_limit(struct model_builder *builder, struct error *error)
{
    double limit;
    if (!builder_number(builder, "swiglu_limit", 0, &limit, error))
        return false;
    return !(limit > 0) || layers_set_all(builder, "swiglu_clamp_exp", GGUF_F32, limit, error);
}

static const struct key_row indexer_keys[] = {
    {"attention.indexer.head_count", GGUF_U32, REQUIRED, "index_n_heads"},
    {"attention.indexer.key_length", GGUF_U32, REQUIRED, "index_head_dim"},
    {"attention.indexer.top_k", GGUF_U32, REQUIRED, "index_topk"},
    {0},
};

/* Marks the layers with an indexer of their own; without indexer_types, those whose attention is sparse. */
static bool emit_indexers(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *own = hparams_get(hparams, "indexer_types"), *types = hparams_get(hparams, "layer_types");
    bool is_told = json_is(own, JSON_ARRAY), is_any = is_told;
    struct layers layers;
    if (!layers_new(builder, &layers, error))
        return false;
    const struct json *type = json_is(is_told ? own : types, JSON_ARRAY) ? json_first(is_told ? own : types) : NULL;
    for (uint64_t i = 0; i < layers.n && type != NULL; i++, type = json_next(type)) {
        if (is_told && !json_string_is(type, "full") && !json_string_is(type, "shared"))
            return error_set(error, "config.json: indexer_types has a word other than full and shared");
        layers.values[i] = is_told ? json_string_is(type, "full")
                                   : json_string_is(type, "sparse_attention") ||
                                         json_string_is(type, "deepseek_sparse_attention") ||
                                         json_string_is(type, "indexed_attention");
        is_any = is_any || layers.values[i] != 0;
    }
    if (!is_any)
        return true;
    if (json_count(is_told ? own : types) < layers.n || (is_told && layers.values[0] == 0))
        return error_set(error, "config.json: the list of indexers is too short, or its first layer shares one");
    if (!builder_emit(builder, indexer_keys, error))
        return false;
    layers_set(builder, "attention.indexer.types", GGUF_BOOL, &layers);
    return true;
}

static void fix_types(struct model_builder *builder)
{
    static const struct stored_type types[] = {{"output.weight", &f32_dtype},
                                               {"blk.{}.hc_attn_fn.weight", &f32_dtype},
                                               {"blk.{}.hc_ffn_fn.weight", &f32_dtype},
                                               {"output_hc_fn.weight", &f32_dtype},
                                               {0}};
    bool is_exact = json_bool(hparams_get(builder->model->hparams, "enable_lm_head_fp32"), false);
    builder->model->stored_types = is_exact ? types : types + 1;
}

/* config.json's number of key heads is that of no tensor. */
static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    (void)hparams;
    dimensions_set(dimensions, "kv_head", dimensions_get(dimensions, "head"));
}

static const char *make_limit(const struct config_material *material)
{
    double limit;
    char digits[JSON_FLOAT_TEXT];
    return config_number_of_layer(material, "swiglu_clamp_exp", 0, &limit)
               ? arena_strdup(material->arena, json_f32_text((float)limit, digits))
               : NULL;
}

static const struct config_row config_rows[] = {
    {"head_dim", FROM_KEY, "attention.key_length_mla"},
    {"n_group", FROM_KEY, "expert_group_count", .text = "1"},
    {"topk_group", FROM_KEY, "expert_group_used_count", .text = "1"},
    {"moe_intermediate_size", FROM_KEY, "expert_feed_forward_length"},
    {"swiglu_limit", .make = make_limit},
    {"index_n_heads", FROM_KEY, "attention.indexer.head_count"},
    {"index_head_dim", FROM_KEY, "attention.indexer.key_length"},
    {"index_topk", FROM_KEY, "attention.indexer.top_k"},
    {"indexer_types", FROM_LAYERS, "attention.indexer.types", "'full'|'shared'"},
    {0},
};

const struct family hy_v4_family = {
    .name = "hy_v4",
    .summary = "Hunyuan 4",
    .since = 10816,
    .hf = FAMILY_NAMES({"HYV4ForCausalLM"}),
    .tensors = {hy_v4_tensors, mla_tensors, router_tensors, decoder_tensors},
    .forms =
        CONFIG_FORMS({"HYV4ForCausalLM", "hy_v4", NULL, CONFIG_TABLES(silu_rows, deepseek_config_rows, config_rows)}),
    .keys = {mla_first_keys, base_keys, KEYS({.emit = forget_groups}), mla_keys,
             KEYS({"expert_gating_func", GGUF_U32, ALWAYS, .value = 2}, {.emit = emit_limit},
                  {"hyper_connection.count", GGUF_U32, REQUIRED, "hc_mult"},
                  {"hyper_connection.epsilon", GGUF_F32, REQUIRED, "hc_eps"},
                  {"hyper_connection.magnitude", GGUF_F32, REQUIRED, "hc_magnitude"}, {.emit = emit_indexers})},
    .vocabs = {&bpe_vocab},
    .dimensions = {mla_dimensions},
    .defaults = MLA_DEFAULTS,
    .note =
        "llama.cpp turns neighbouring elements of Hunyuan 4's queries and keys, and transformers 5.24 the two halves "
        "of those that it turns: with the same weights they compute other values",
    .add_dimensions = add_dimensions,
    .adjust = layers_count_dense,
    .arrange = fix_types,
};
