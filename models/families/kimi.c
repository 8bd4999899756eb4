/* Kimi-Linear and Kimi K3. */
#include "base/text.h"
#include "models/families/deepseek/deepseek.h"
#include "models/families/layers.h"
#include "models/families/linear_attention.h"
#include "models/families/shared.h"
#include "quant/views/unpack.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <string.h>

/* Kimi-Linear: three layers of delta attention to one of latent attention. conversion/kimi_linear.py. */

#define KIMI_LINEAR_ATTENTION "model.layers.{}.self_attn"
#define KIMI_LINEAR_EXPERTS   "model.layers.{}.block_sparse_moe"

static const struct relation_row kimi_linear_tensors[] = {
    {KIMI_LINEAR_ATTENTION ".A_log", "blk.{}.ssm_a", .parallel = "row", .map = &minus_exp},
    {KIMI_LINEAR_ATTENTION ".f_a_proj", "blk.{}.ssm_f_a"},
    {KIMI_LINEAR_ATTENTION ".f_b_proj", "blk.{}.ssm_f_b", .parallel = "row"},
    {KIMI_LINEAR_ATTENTION ".g_a_proj", "blk.{}.ssm_g_a"},
    {KIMI_LINEAR_ATTENTION ".g_b_proj", "blk.{}.ssm_g_b", .parallel = "row"},
    {KIMI_LINEAR_EXPERTS ".gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {KIMI_LINEAR_EXPERTS ".shared_experts.gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {KIMI_LINEAR_EXPERTS ".shared_experts.up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {KIMI_LINEAR_EXPERTS ".shared_experts.down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {0},
};

/* Layers without experts as save_pretrained() of transformers 5.24 names them: it renames all layers for the experts.
 */
static const struct relation_row dense_tensors[] = {
    {KIMI_LINEAR_EXPERTS ".gate_proj", "blk.{}.ffn_gate", .parallel = "row", .forward_only = true},
    {KIMI_LINEAR_EXPERTS ".up_proj", "blk.{}.ffn_up", .parallel = "row", .forward_only = true},
    {KIMI_LINEAR_EXPERTS ".down_proj", "blk.{}.ffn_down", .parallel = "column", .forward_only = true},
    {0},
};

/* Sets the key heads: listed layers, numbered from 1, have latent attention with one key for all queries. */
static bool kimi_linear_emit_kv_heads(struct model_builder *builder, struct error *error)
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

static const struct key_row kimi_linear_keys[] = {
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
    return kda_undo_saving(builder, ", 'moe_router_activation_func': 'sigmoid'", error) &&
           hparams_override(builder->model->hparams, "num_key_value_heads", 1, error);
}

const struct family kimi_linear_family = {
    .name = "kimi-linear",
    .summary = "Kimi-Linear",
    .hf = FAMILY_NAMES({"KimiLinearForCausalLM"}, {"KimiLinearModel"}),
    .tensors = {kimi_linear_tensors, kda_self_attention_tensors, mla_tensors, sparse_moe_tensors, decoder_tensors,
                dense_tensors},
    .forms = CONFIG_FORMS(
        {"KimiLinearForCausalLM", "kimi_linear", NULL, CONFIG_TABLES(silu_rows, num_experts_rows, config_rows)}),
    .keys = {base_keys, kimi_linear_keys},
    .vocabs = {&bpe_vocab, &kimi_linear_vocab},
    .dimensions = {mla_dimensions},
    .adjust = adjust,
};

/* Kimi K3, the text model: Kimi-Linear's layers with residuals to earlier layers and experts in a narrower space.
 * conversion/kimi_k3.py.
 *
 * A norm and a projection that serve only as their product are one vector in a GGUF. */

/* The text model has Kimi-Linear's class. */
static const struct family_name names[] = {{"KimiK3ForConditionalGeneration"}, {"KimiLinearForCausalLM"}, {0}};

#define KIMI_K3_ATTENTION "model.layers.{}.self_attn"
#define KIMI_K3_EXPERTS   "model.layers.{}.block_sparse_moe"

/* "latent_gate" stands for the g_proj of layers with latent attention, "_first" and "_second" for the factors of a
 * product. */
static const struct relation_row tensors[] = {
    {KIMI_K3_ATTENTION ".g_proj", "blk.{}.ssm_g", .parallel = "row"},
    {KIMI_K3_ATTENTION ".latent_gate", "blk.{}.attn_gate", .parallel = "row"},
    {KIMI_K3_EXPERTS ".routed_expert_down_proj", "blk.{}.ffn_routed_down"},
    {KIMI_K3_EXPERTS ".routed_expert_up_proj", "blk.{}.ffn_routed_up"},
    {KIMI_K3_EXPERTS ".routed_expert_norm", "blk.{}.ffn_routed_norm"},
    {"model.layers.{}.self_attention_res_norm", "blk.{}.attn_res_score_norm"},
    {"model.layers.{}.self_attention_res_proj", "blk.{}.attn_res_score_norm_proj"},
    {"model.layers.{}.mlp_res_norm", "blk.{}.ffn_res_score_norm"},
    {"model.layers.{}.mlp_res_proj", "blk.{}.ffn_res_score_norm_proj"},
    {"model.output_attn_res_norm", "output_res_score_norm"},
    {"model.output_attn_res_proj", "output_res_score_norm_proj"},
    {0},
};

static bool is_k3(const struct hparams *hparams)
{
    return json_string_is(json_first(json_get(hparams_raw(hparams), "architectures")), names[0].name);
}

/* Remembers the layers with latent attention. */
static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    const struct json *listed = hparams_get(hparams, "linear_attn_config.full_attn_layers");
    uint64_t number;
    for (const struct json *item = json_is(listed, JSON_ARRAY) ? json_first(listed) : NULL; item != NULL;
         item = json_next(item))
        if (json_u64(item, &number) && number >= 1)
            layers_remember(dimensions, number - 1);
}

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char *const gates[] = {KIMI_K3_ATTENTION ".g_proj.weight", KIMI_K3_ATTENTION ".latent_gate.weight"};
    uint64_t numbers[PATTERN_NUMBERS];
    if (direction == FORWARD && (text_starts_with(name, "vision_tower.") || text_starts_with(name, "mm_projector.")))
        return NULL;
    if (!pattern_match(gates[direction], name, strlen(name), numbers))
        return name;
    bool is_moved = direction == BACKWARD || layers_recall(dimensions, numbers[0]);
    return is_moved ? pattern_fill(arena, gates[!direction], numbers, "") : name;
}

static bool check_kind(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    if (!json_bool(hparams_get(hparams, "mla_use_nope"), false))
        return error_set(error, "config.json: mla_use_nope is not true: other latent attention is not supported");
    if (!json_string_is(hparams_get(hparams, "moe_router_activation_func"), "sigmoid") ||
        !json_string_is(hparams_get(hparams, "hidden_act"), "situ"))
        return error_set(error, "config.json: moe_router_activation_func is not 'sigmoid', or hidden_act not 'situ'");
    if (builder->dimensions.n_layers > MAX_REMEMBERED_LAYERS)
        return error_set(error, "config.json: more than %d layers", MAX_REMEMBERED_LAYERS);
    kda_look(builder);
    return hparams_override(hparams, "num_key_value_heads", 1, error);
}

static const struct key_row kimi_k3_keys[] = {
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {.emit = kimi_linear_emit_kv_heads},
    {"ssm.conv_kernel", GGUF_U32, REQUIRED, "linear_attn_config.short_conv_kernel_size"},
    {"kda.head_dim", GGUF_U32, REQUIRED, "linear_attn_config.head_dim"},
    {"kda.gate_lower_bound", GGUF_F32, IF_PRESENT, "linear_attn_config.gate_lower_bound"},
    {"attention.q_lora_rank", GGUF_U32, IF_PRESENT, "q_lora_rank"},
    {"attention.kv_lora_rank", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim"},
    {"attention.key_length", GGUF_U32, REQUIRED, "kv_lora_rank|n_lora_kv", .plus = "qk_rope_head_dim|n_rot"},
    {"attention.value_length", GGUF_U32, REQUIRED, "kv_lora_rank"},
    {"attention.key_length_mla", GGUF_U32, REQUIRED, "qk_nope_head_dim", .plus = "qk_rope_head_dim|n_rot"},
    {"attention.key_length_mla", GGUF_U32, IF_PRESENT, "n_embd_head_k_mla"},
    {"attention.value_length_mla", GGUF_U32, REQUIRED, "v_head_dim"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_shared_count", GGUF_U32, REQUIRED, "num_shared_experts"},
    {"leading_dense_block_count", GGUF_U32, REQUIRED, "first_k_dense_replace"},
    {"expert_weights_scale", GGUF_F32, REQUIRED, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, REQUIRED, "moe_renormalize"},
    {"expert_gating_func", GGUF_U32, ALWAYS, .value = 2}, /* sigmoid */
    {"expert_latent_length", GGUF_U32, IF_PRESENT, "routed_expert_hidden_size"},
    {"activation.situ_beta", GGUF_F32, REQUIRED, "activation_situ_beta"},
    {"activation.situ_linear_beta", GGUF_F32, REQUIRED, "activation_situ_linear_beta"},
    {"attn_res.block_size", GGUF_U32, REQUIRED, "attn_res_block_size"},
    {0},
};

static const struct view *flat_f32(struct arena *arena, const struct view *view)
{
    const uint64_t shape[1] = {view->n_elements};
    return view_convert(arena, view_reshape(arena, view, 1, shape), &f32_dtype);
}

/* Replaces each norm and its projection by their product, at the place of the second. */
static void multiply_pairs(struct gguf_model *model)
{
    struct tensor_set *before = model->tensors, *set = tensor_set_new(model->arena);
    const struct tensor *held[3] = {NULL};
    for (size_t i = 0; i < before->n_tensors; i++) {
        struct tensor tensor = before->tensors[i];
        const char *end = strstr(tensor.name, "_res_score_norm");
        if (end == NULL) {
            tensor_set_add(set, &tensor);
            continue;
        }
        size_t stem = (size_t)(end - tensor.name) + strlen("_res_score");
        unsigned kind = text_starts_with(tensor.name, "output") ? 2 : strstr(tensor.name, "ffn") != NULL;
        if (held[kind] == NULL) {
            held[kind] = &before->tensors[i];
            continue;
        }
        static const struct sharing one_row = {1, 1, NULL};
        const struct view *product = view_combine(model->arena, flat_f32(model->arena, held[kind]->view), MULTIPLY,
                                                  flat_f32(model->arena, tensor.view), &one_row);
        tensor_set_add_view(set, arena_printf(model->arena, "%.*s.weight", (int)stem, tensor.name), product);
        held[kind] = NULL;
    }
    model->tensors = set;
}

static void arrange(struct model_builder *builder)
{
    enum { FILE_TYPE_MXFP4 = 38 };
    static const char *const experts[] = {"blk.{}.ffn_gate_exps.weight", "blk.{}.ffn_down_exps.weight",
                                          "blk.{}.ffn_up_exps.weight", NULL};
    struct gguf_model *model = builder->model;
    bool is_packed = false;
    multiply_pairs(model);
    for (size_t i = 0; i < model->tensors->n_tensors && !is_packed; i++)
        is_packed = strcmp(model->tensors->tensors[i].view->dtype->name, "MXFP4") == 0;
    if (!is_packed)
        return;
    builder_put_first(builder, experts);
    model->packed_file_type = FILE_TYPE_MXFP4;
}

/* Sets the end of a turn from config.json, whatever the tokenizer has. */
static bool after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    static const struct key_row rows[] = {{".tokenizer.ggml.eos_token_id", GGUF_U32, IF_PRESENT, "eos_token_id"}, {0}};
    return builder_emit(builder, rows, error) && release_chat_template(builder, input, error);
}

const struct family kimi_k3_family = {
    .name = "kimi-k3",
    .summary = "Kimi K3 (language model)",
    .hf = names,
    .tensors = {tensors, kimi_linear_tensors, kda_self_attention_tensors, mla_tensors, sparse_moe_tensors,
                decoder_tensors},
    .keys = {base_keys, kimi_k3_keys},
    .vocabs = {&bpe_vocab, &kimi_linear_vocab},
    .keeps_mxfp4 = true,
    .applies = is_k3,
    .rename = rename_tensor,
    .dimensions = {mla_dimensions},
    .add_dimensions = add_dimensions,
    .adjust = check_kind,
    .arrange = arrange,
    .after_vocab = after_vocab,
};
