/* Hunyuan 4: DeepSeek's latent attention with a gate and a sink, indexers in some layers, hyper-connections.
 * conversion/hy_v4.py. */
#include "models/families/deepseek/deepseek.h"
#include "models/families/layers.h"
#include "text/json_write.h"

#define ATTENTION "model.layers.{}.self_attn."

static const struct relation_row tensors[] = {
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

/* Finds the number of leading dense layers: config.json has it, a list of the layers' types, or both. */
static bool count_dense(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    const struct json *types = hparams_get(hparams, "mlp_layer_types"),
                      *told = hparams_get(hparams, "first_k_dense_replace");
    uint64_t n_dense = 0, n_told;
    bool is_told = json_u64(told, &n_told), is_leading = true;
    if (!is_told && !json_is(types, JSON_ARRAY))
        return error_set(error, "config.json: first_k_dense_replace and mlp_layer_types are missing");
    for (const struct json *type = json_is(types, JSON_ARRAY) ? json_first(types) : NULL; type != NULL;
         type = json_next(type)) {
        bool is_dense = json_string_is(type, "dense");
        if (is_dense && !is_leading)
            return error_set(error, "config.json: a dense layer follows one with experts in mlp_layer_types");
        is_leading = is_dense;
        n_dense += is_dense;
    }
    if (is_told && json_is(types, JSON_ARRAY) && n_told != n_dense)
        return error_set(error,
                         "config.json: first_k_dense_replace is %llu, but mlp_layer_types begins with %llu dense",
                         (unsigned long long)n_told, (unsigned long long)n_dense);
    return is_told || hparams_override(hparams, "first_k_dense_replace", n_dense, error);
}

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
    .tensors = {tensors, mla_tensors, router_tensors, decoder_tensors},
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
    .add_dimensions = add_dimensions,
    .adjust = count_dense,
    .arrange = fix_types,
};
