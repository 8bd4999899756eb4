/* GLM-5.3 Flash: delta attention, latent attention without positions to tokens that an indexer chooses, experts, and
 * hyper-connections. conversion/glm.py, Glm5NextModel. */
#include "models/families/deepseek/deepseek.h"
#include "models/families/drafts/nextn.h"
#include "models/families/layers.h"
#include "models/families/linear_attention.h"
#include "text/json_write.h"

#include <math.h>

#define ATTENTION "model.layers.{}.self_attn."

static const struct relation_row tensors[] = {
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {ATTENTION "A_log", "blk.{}.ssm_a", .parallel = "row", .map = &minus_exp},
    {ATTENTION "f_a_proj", "blk.{}.ssm_f_a"},
    {ATTENTION "f_b_proj", "blk.{}.ssm_f_b", .parallel = "row"},
    {ATTENTION "g_a_proj", "blk.{}.ssm_g_a"},
    {ATTENTION "g_b_proj", "blk.{}.ssm_g_b", .parallel = "row"},
    {ATTENTION "indexer.wq_b", "blk.{}.indexer.attn_q_b"},
    {ATTENTION "indexer.wk", "blk.{}.indexer.attn_k"},
    {ATTENTION "indexer.k_norm", "blk.{}.indexer.k_norm"},
    {ATTENTION "indexer.weights_proj", "blk.{}.indexer.proj"},
    {ATTENTION "indexer.index_kpool_compress_ape", "blk.{}.indexer_compressor_ape.weight"},
    {ATTENTION "indexer.index_kpool_compress_gate", "blk.{}.indexer_compressor_gate.weight"},
    {"model.layers.{}.hc_attn_fn", "blk.{}.hc_attn_fn.weight"},
    {"model.layers.{}.hc_attn_base", "blk.{}.hc_attn_base.weight"},
    {"model.layers.{}.hc_attn_scale", "blk.{}.hc_attn_scale.weight"},
    {"model.layers.{}.hc_ffn_fn", "blk.{}.hc_ffn_fn.weight"},
    {"model.layers.{}.hc_ffn_base", "blk.{}.hc_ffn_base.weight"},
    {"model.layers.{}.hc_ffn_scale", "blk.{}.hc_ffn_scale.weight"},
    {0},
};

/* Checks that the model is of the one kind that the converter knows. */
static bool check_kind(const struct hparams *hparams, struct error *error)
{
    uint64_t n_rotary, n_heads, n_linear;
    if (!hparams_count(hparams, "qk_rope_head_dim", 0, UINT32_MAX, &n_rotary, error) ||
        !hparams_count(hparams, HEAD_COUNT, 1, UINT32_MAX, &n_heads, error) ||
        !hparams_count(hparams, "linear_attn_config.num_heads", 1, UINT32_MAX, &n_linear, error))
        return false;
    if (!json_bool(hparams_get(hparams, "mla_use_nope"), false) || n_rotary != 0)
        return error_set(error, "config.json: mla_use_nope is not true, or qk_rope_head_dim is not 0: latent attention "
                                "with positions is not supported");
    if (!json_bool(hparams_get(hparams, "mhc"), true))
        return error_set(error, "config.json: mhc is false: models without hyper-connections are not supported");
    return n_heads == n_linear ||
           error_set(error, "config.json: linear_attn_config.num_heads is %llu, but num_attention_heads is %llu",
                     (unsigned long long)n_linear, (unsigned long long)n_heads);
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    kda_look(builder);
    return check_kind(builder->model->hparams, error) && nextn_count_blocks(builder, error);
}

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    nextn_add_dimensions(dimensions, hparams);
    dimensions_set(dimensions, "kv_head", dimensions_get(dimensions, "head"));
}

/* Removes what the common rows wrote from head_dim, and sets the key heads: one in layers with latent attention. */
static bool emit_heads(struct model_builder *builder, struct error *error)
{
    const struct json *types = hparams_get(builder->model->hparams, "layer_types");
    struct layers layers;
    gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "attention.key_length"));
    gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "attention.value_length"));
    if (!layers_new(builder, &layers, error))
        return false;
    uint64_t n = layers.n - dimensions_get(&builder->dimensions, "nextn");
    if (!json_is(types, JSON_ARRAY) || json_count(types) != n)
        return error_set(error, "config.json: layer_types has %zu layers, but num_hidden_layers is %llu",
                         json_count(types), (unsigned long long)n);
    const struct json *type = json_first(types);
    for (uint64_t i = 0; i < layers.n; i++, type = type != NULL ? json_next(type) : NULL)
        layers.values[i] = !json_string_is(type, "linear_attention");
    return layers_set_i32(builder, "attention.head_count_kv", &layers, error);
}

static bool emit_indexer_types(struct model_builder *builder, struct error *error)
{
    const struct json *types = hparams_get(builder->model->hparams, "indexer_types");
    struct layers layers;
    if (!json_is(types, JSON_ARRAY))
        return true;
    if (!layers_of_list(builder, types, &layers, error))
        return false;
    const struct json *type = json_first(types);
    for (uint64_t i = 0; i < layers.n; i++, type = json_next(type))
        layers.values[i] = json_string_is(type, "full");
    layers_set(builder, "attention.indexer.types", GGUF_BOOL, &layers);
    return true;
}

static bool emit_clamps(struct model_builder *builder, struct error *error)
{
    const struct json *limit = hparams_get(builder->model->hparams, "swiglu_limit");
    return limit == NULL || json_type(limit) == JSON_NULL || layers_set_clamps(builder, limit, error);
}

static const struct key_row keys[] = {
    {.emit = emit_heads},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-6},
    {.emit = nextn_emit},
    {"ssm.conv_kernel", GGUF_U32, REQUIRED, "linear_attn_config.short_conv_kernel_size"},
    {"kda.head_dim", GGUF_U32, REQUIRED, "linear_attn_config.head_dim"},
    {"kda.gate_lower_bound", GGUF_F32, IF_PRESENT, "linear_attn_config.gate_lower_bound"},
    {"attention.q_lora_rank", GGUF_U32, REQUIRED, "q_lora_rank"},
    {"attention.kv_lora_rank", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim"},
    {"attention.key_length", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.value_length", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.key_length_mla", GGUF_U32, REQUIRED, "qk_nope_head_dim"},
    {"attention.value_length_mla", GGUF_U32, REQUIRED, "v_head_dim"},
    {"attention.indexer.head_count", GGUF_U32, REQUIRED, "index_n_heads"},
    {"attention.indexer.key_length", GGUF_U32, REQUIRED, "index_head_dim"},
    {"attention.indexer.top_k", GGUF_U32, REQUIRED, "index_topk"},
    {"attention.indexer.kpool", GGUF_U32, REQUIRED, "index_kpool"},
    {"attention.indexer.kpool_select_tail", GGUF_BOOL, OR_DEFAULT, "index_kpool_always_select_tail", 1},
    {.emit = emit_indexer_types},
    {"hyper_connection.count", GGUF_U32, REQUIRED, "hc_mult"},
    {"hyper_connection.sinkhorn_iterations", GGUF_U32, REQUIRED, "hc_sinkhorn_iters"},
    {"hyper_connection.epsilon", GGUF_F32, REQUIRED, "hc_eps"},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_shared_count", GGUF_U32, REQUIRED, "n_shared_experts"},
    {"expert_weights_scale", GGUF_F32, REQUIRED, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, REQUIRED, "norm_topk_prob"},
    {.emit = emit_clamps},
    {0},
};

/* Gives A_log, which checkpoints store in several shapes and with padding, one number for each head. */
static void flatten_decays(struct model_builder *builder)
{
    struct arena *arena = builder->model->arena;
    struct tensor_set *set = builder->model->tensors;
    uint64_t n_heads = dimensions_get(&builder->dimensions, "head"), numbers[PATTERN_NUMBERS];
    for (size_t i = 0; i < set->n_tensors; i++) {
        struct tensor *tensor = &tensor_set_edit(set)[i];
        if (!pattern_match("blk.{}.ssm_a", tensor->name, tensor->name_length, numbers))
            continue;
        const uint64_t length = tensor->view->n_elements;
        const struct view *flat = view_reshape(arena, tensor->view, 1, &length);
        *tensor = tensor_of_view(tensor->name, length > n_heads ? view_slice(arena, flat, 0, 0, n_heads, 1) : flat);
    }
}

/* Small parameters are exact in every output. */
static const struct stored_type stored_types[] = {{"blk.{}.hc_attn_fn.weight", &f32_dtype},
                                                  {"blk.{}.hc_ffn_fn.weight", &f32_dtype},
                                                  {"blk.{}.indexer_compressor_ape.weight", &f32_dtype},
                                                  {"blk.{}.indexer_compressor_gate.weight", &f32_dtype},
                                                  {0}};

/* Returns the delta attention's object; NULL: a key is missing. */
static const char *make_linear_attention(const struct config_material *material)
{
    char digits[JSON_FLOAT_TEXT];
    double n_heads, head_dim, kernel, bound;
    if (!config_number_of_layer(material, "attention.head_count", 0, &n_heads) ||
        !config_number_of_layer(material, "kda.head_dim", 0, &head_dim) ||
        !config_number_of_layer(material, "ssm.conv_kernel", 0, &kernel))
        return NULL;
    const char *line =
        gguf_get_f64(material->kvs, "glm5-next.kda.gate_lower_bound", &bound)
            ? arena_printf(material->arena, "    \"gate_lower_bound\": %s,\n", json_f32_text((float)bound, digits))
            : "";
    return arena_printf(material->arena,
                        "{\n%s    \"head_dim\": %.0f,\n    \"num_heads\": %.0f,\n    "
                        "\"short_conv_kernel_size\": %.0f\n  }",
                        line, head_dim, n_heads, kernel);
}

static const struct config_row config_rows[] = {
    {"num_key_value_heads", FROM_KEY, "attention.head_count"},
    {"layer_types", FROM_LAYERS, "attention.head_count_kv", "'full_attention'|'linear_attention'"},
    {"linear_attn_config", .make = make_linear_attention},
    {"mla_use_nope", FROM_TEXT, .text = "true"},
    {"mhc", FROM_TEXT, .text = "true"},
    {"qk_nope_head_dim", FROM_KEY, "attention.key_length_mla"},
    {"v_head_dim", FROM_KEY, "attention.value_length_mla"},
    {"head_dim", FROM_NOWHERE}, /* the converter has no use for it */
    {"mlp_layer_types", FROM_LAYERS, "blk.{}.ffn_gate_inp.weight", "'sparse'|'dense'"},
    {"n_routed_experts", FROM_KEY, "expert_count"},
    {"n_group", FROM_KEY, "expert_group_count", .text = "1"},
    {"topk_group", FROM_KEY, "expert_group_used_count", .text = "1"},
    {"scoring_func", .make = config_gating_function},
    {"indexer_types", FROM_LAYERS, "attention.indexer.types", "'full'|'shared'"},
    {"swiglu_limit", .make = layers_clamp},
    {0},
};

const struct family glm5_next_family = {
    .name = "glm5-next",
    .summary = "GLM-5.3 Flash",
    .since = 11292,
    .hf = FAMILY_NAMES({"Glm5NextForConditionalGeneration"}),
    .tensors = {tensors, kda_self_attention_tensors, mla_tensors, nextn_tensors, expert_tensors, router_tensors,
                decoder_tensors},
    .forms = CONFIG_FORMS({"Glm5NextForConditionalGeneration", "glm5_next_text", NULL,
                           CONFIG_TABLES(silu_rows, config_rows), HEADLESS_HALF_NOTE}),
    .keys = {base_keys, keys},
    .exports_mtp = true,
    .vocabs = {&glm_vocab},
    .stored_types = stored_types,
    .dimensions = {mla_dimensions},
    .add_dimensions = add_dimensions,
    .adjust = adjust,
    .arrange = flatten_decays,
};
