/* Kimi-Linear: three layers of delta attention to one of latent attention. conversion/kimi_linear.py. */
#include "models/families/kimi/kimi_linear.h"

#include "models/families/deepseek/deepseek.h"
#include "models/families/layers.h"
#include "models/families/linear_attention.h"
#include "text/json_write.h"

#include <inttypes.h>

#define ATTENTION "model.layers.{}.self_attn"
#define EXPERTS   "model.layers.{}.block_sparse_moe"

const struct relation_row kimi_linear_tensors[] = {
    {ATTENTION ".A_log", "blk.{}.ssm_a", .parallel = "row", .map = &minus_exp},
    {ATTENTION ".f_a_proj", "blk.{}.ssm_f_a"},
    {ATTENTION ".f_b_proj", "blk.{}.ssm_f_b", .parallel = "row"},
    {ATTENTION ".g_a_proj", "blk.{}.ssm_g_a"},
    {ATTENTION ".g_b_proj", "blk.{}.ssm_g_b", .parallel = "row"},
    {EXPERTS ".gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {EXPERTS ".shared_experts.gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {EXPERTS ".shared_experts.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {EXPERTS ".shared_experts.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {0},
};

/* Layers without experts as save_pretrained() of transformers 5.24 names them: it renames all layers for the experts.
 */
static const struct relation_row dense_tensors[] = {
    {EXPERTS ".gate_proj", "blk.{}.ffn_gate", .parallel = "row", .forward_only = true},
    {EXPERTS ".up_proj", "blk.{}.ffn_up", .parallel = "row", .forward_only = true},
    {EXPERTS ".down_proj", "blk.{}.ffn_down", .parallel = "column", .forward_only = true},
    {0},
};

/* Sets the key heads: listed layers, numbered from 1, have latent attention with one key for all queries. */
bool kimi_linear_emit_kv_heads(struct model_builder *builder, struct error *error)
{
    const struct json *listed = hparams_get(builder->model->hparams, "linear_attn_config.full_attn_layers");
    struct layers layers;
    if (!layers_new(builder, &layers, error))
        return false;
    if (!json_is(listed, JSON_ARRAY))
        return error_set(error, "config.json: linear_attn_config.full_attn_layers is missing, or not a list");
    for (const struct json *item = json_first(listed); item != NULL; item = json_next(item)) {
        uint64_t number;
        if (json_u64(item, &number) && number >= 1 && number <= layers.n)
            layers.values[number - 1] = 1;
    }
    return layers_set_i32(builder, "attention.head_count_kv", &layers, error);
}

static const struct key_row keys[] = {
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {.emit = kimi_linear_emit_kv_heads},
    {"ssm.conv_kernel", GGUF_U32, IF_PRESENT, "linear_attn_config.short_conv_kernel_size"},
    {"kda.head_dim", GGUF_U32, IF_PRESENT, "linear_attn_config.head_dim"},
    {"attention.q_lora_rank", GGUF_U32, IF_PRESENT, "q_lora_rank|n_lora_q"},
    {"attention.kv_lora_rank", GGUF_U32, REQUIRED, "kv_lora_rank|n_lora_kv"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim|n_rot"},
    {"attention.key_length", GGUF_U32, REQUIRED, "kv_lora_rank|n_lora_kv", .plus = "qk_rope_head_dim|n_rot"},
    {"attention.key_length_mla", GGUF_U32, REQUIRED, "qk_nope_head_dim", .plus = "qk_rope_head_dim|n_rot"},
    {"attention.key_length_mla", GGUF_U32, IF_PRESENT, "n_embd_head_k_mla"},
    {"attention.value_length_mla", GGUF_U32, REQUIRED, "n_embd_head_v_mla|v_head_dim"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_shared_count", GGUF_U32, REQUIRED, "num_shared_experts"},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
    {"expert_weights_scale", GGUF_F32, REQUIRED, "routed_scaling_factor"},
    {0},
};

/* Writes a list of layers, numbered from 1. */
static void put_layers(struct json_writer *writer, const char *key, const struct layer_marks *latent, bool has_latent)
{
    json_begin_array(writer, key);
    json_keep_line(writer);
    for (uint64_t i = 0; i < latent->n; i++)
        if (latent->marked[i] == has_latent)
            json_put_number(writer, NULL, i + 1);
    json_end(writer);
}

/* Counts the delta attention's heads: the rows of their weights. */
static uint64_t count_heads(const struct config_material *material)
{
    struct layer_marks marks;
    const char pattern[] = "blk.{}.ssm_beta.weight";
    if (!layer_marks_of_tensors(material->tensors, pattern, material->n_layers, material->arena, &marks))
        return 0;
    for (uint64_t i = 0; i < marks.n; i++)
        if (marks.marked[i]) {
            const char *name = arena_printf(material->arena, "blk.%" PRIu64 ".ssm_beta.weight", i);
            const struct tensor *tensor = tensor_set_find_text(material->tensors, name);
            return tensor != NULL && tensor->rank > 0 ? tensor->shape[0] : 0;
        }
    return 0;
}

static const char *make_linear_attention(const struct config_material *material)
{
    enum { ALL_DIGITS = 17 };
    struct buffer out = {0};
    struct json_writer writer = {.out = &out, .letters = JSON_ASCII, .indent = 1};
    struct layer_marks latent;
    double head_dim, kernel;
    const char *key = arena_printf(material->arena, "%s.attention.head_count_kv", material->architecture);
    if (!layer_marks_of_key(material->kvs, key, material->n_layers, material->arena, &latent) ||
        !config_number_of_layer(material, "kda.head_dim", 0, &head_dim) ||
        !config_number_of_layer(material, "ssm.conv_kernel", 0, &kernel))
        return NULL;
    json_begin_object(&writer, NULL);
    put_layers(&writer, "full_attn_layers", &latent, true);
    json_put_f64(&writer, "head_dim", head_dim, ALL_DIGITS);
    put_layers(&writer, "kda_layers", &latent, false);
    json_put_number(&writer, "num_heads", count_heads(material));
    json_put_f64(&writer, "short_conv_kernel_size", kernel, ALL_DIGITS);
    json_end(&writer);
    const char *object = arena_strndup(material->arena, (const char *)out.bytes, out.length);
    buffer_free(&out);
    return object;
}

static const struct config_row config_rows[] = {
    {"num_key_value_heads", FROM_KEY, "attention.head_count"},
    {"q_lora_rank", FROM_KEY, "attention.q_lora_rank", .text = "null"},
    {"qk_nope_head_dim", FROM_DIFFERENCE, "attention.key_length_mla", "rope.dimension_count"},
    {"v_head_dim", FROM_KEY, "attention.value_length_mla"},
    {"num_experts_per_token", FROM_KEY, "expert_used_count"},
    {"moe_layer_freq", FROM_TEXT, .text = "1"},
    {"moe_renormalize", FROM_TEXT, .text = "true"},
    {"moe_router_activation_func", .make = config_gating_function, .text = "'sigmoid'"},
    {"num_expert_group", FROM_KEY, "expert_group_count", .text = "1"},
    {"topk_group", FROM_KEY, "expert_group_used_count", .text = "1"},
    {"n_embd_head_k_mla", FROM_NOWHERE},
    {"linear_attn_config", .make = make_linear_attention},
    {0},
};

static bool adjust(struct model_builder *builder, struct error *error)
{
    kda_look(builder);
    return hparams_override(builder->model->hparams, "num_key_value_heads", 1, error);
}

const struct family kimi_linear_family = {
    .name = "kimi-linear",
    .summary = "Kimi-Linear",
    .hf = FAMILY_NAMES({"KimiLinearForCausalLM"}, {"KimiLinearModel"}),
    .tensors = {kimi_linear_tensors, kda_self_attention_tensors, mla_tensors, sparse_moe_tensors, decoder_tensors,
                dense_tensors},
    .forms = CONFIG_FORMS(
        {"KimiLinearForCausalLM", "kimi_linear", NULL, CONFIG_TABLES(silu_rows, num_experts_rows, config_rows)}),
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab, &kimi_linear_vocab},
    .dimensions = {mla_dimensions},
    .adjust = adjust,
};
