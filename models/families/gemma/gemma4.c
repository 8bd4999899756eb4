/* Gemma 3n, Gemma 4 and EmbeddingGemma 2: an embedding for each layer, windows. conversion/gemma.py. */
#include "base/text.h"
#include "formats/documents.h"
#include "models/families/gemma/gemma.h"
#include "models/families/layers.h"
#include "quant/views/convert.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Gemma 3n, the text model: several streams (AltUp), and an embedding for each layer. conversion/gemma.py. */

/* Three tensors of a kind, stacked; "even", "odd" and "last" are 1. */
#define STACKED "(even i) o, (odd i) o, (last i) o -> (even + odd + last) i o"

static const struct relation_row gemma3n_tensors[] = {
    {"model.embed_tokens", "token_embd", "row c -> (row + added) c", "row"},
    {"model.embed_tokens_per_layer", "per_layer_token_embd", "row c -> (row + added_per_layer) c", "row"},
    {"lm_head.weight", "output.weight", .parallel = "row"},
    {"model.altup_projections.0, model.altup_projections.1, model.altup_projections.2", "altup_proj", STACKED, "row"},
    {"model.altup_unembed_projections.0, model.altup_unembed_projections.1, model.altup_unembed_projections.2",
     "altup_unembd_proj", STACKED, "row"},
    {"model.per_layer_model_projection", "per_layer_model_proj", .parallel = "row"},
    {"model.per_layer_projection_norm", "per_layer_proj_norm"},
    {"model.layers.{}.altup.correct_output_scale", "blk.{}.altup_correct_scale.weight"},
    {"model.layers.{}.altup.correction_coefs", "blk.{}.altup_correct_coef"},
    {"model.layers.{}.altup.prediction_coefs", "blk.{}.altup_predict_coef"},
    {"model.layers.{}.altup.modality_router", "blk.{}.altup_router"},
    {"model.layers.{}.altup.router_norm", "blk.{}.altup_router_norm"},
    {"model.layers.{}.laurel.linear_left", "blk.{}.laurel_l", .parallel = "row"},
    {"model.layers.{}.laurel.linear_right", "blk.{}.laurel_r", .parallel = "column"},
    {"model.layers.{}.laurel.post_laurel_norm", "blk.{}.laurel_post_norm"},
    {"model.layers.{}.per_layer_input_gate", "blk.{}.inp_gate"},
    {"model.layers.{}.per_layer_projection", "blk.{}.proj"},
    {"model.layers.{}.post_per_layer_input_norm", "blk.{}.post_norm"},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {"model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm"},
    {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm"},
    {0},
};

/* Sets one width for all layers. */
static bool emit_feed_forward(struct model_builder *builder, struct error *error)
{
    const struct json *width = hparams_get(builder->model->hparams, "intermediate_size");
    struct layers layers;
    double value;
    if (!json_double(width, &value))
        return true;
    if (!layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = value;
    return layers_set_i32(builder, "feed_forward_length", &layers, error);
}

/* Sets how many standard deviations are below a share of a normal distribution, as torch computes it in F32, for the
 * only two shares in use. */
static bool emit_sparsity(struct model_builder *builder, struct error *error)
{
    enum { SPARSE_LAYERS = 10 };
    const double share = 0.95, deviations = 1.6448535919189453;
    const struct json *pattern = hparams_get(builder->model->hparams, "activation_sparsity_pattern");
    struct layers layers;
    if (!layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < SPARSE_LAYERS && layers.n > SPARSE_LAYERS && !json_is(pattern, JSON_ARRAY); i++)
        layers.values[i] = share;
    layers_fill(&layers, pattern);
    for (uint64_t i = 0; i < layers.n; i++) {
        if (layers.values[i] != 0 && layers.values[i] != share)
            return error_set(error, "config.json: activation_sparsity_pattern has %g, which is neither 0 nor 0.95",
                             layers.values[i]);
        layers.values[i] = layers.values[i] == 0 ? (double)-INFINITY : deviations;
    }
    layers_set(builder, "activation_sparsity_scale", GGUF_F32, &layers);
    return true;
}

static bool emit_window_pattern(struct model_builder *builder, struct error *error)
{
    enum { FULL_EACH = 5 };
    struct layers layers;
    if (json_is(hparams_get(builder->model->hparams, "layer_types"), JSON_ARRAY))
        return emit_listed_windows(builder, error);
    if (!layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = (i + 1) % FULL_EACH != 0;
    layers_set(builder, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}

static const struct key_row gemma3n_keys[] = {
    {.emit = emit_feed_forward},
    {"altup.active_idx", GGUF_U32, REQUIRED, "altup_active_idx"},
    {"altup.num_inputs", GGUF_U32, REQUIRED, "altup_num_inputs"},
    {"embedding_length_per_layer_input", GGUF_U32, REQUIRED, "hidden_size_per_layer_input"},
    {"attention.shared_kv_layers", GGUF_U32, REQUIRED, "num_kv_shared_layers"},
    {.emit = emit_sparsity},
    {.emit = emit_window_pattern},
    {0},
};

/* Sets a dimension for rows of zeros that give an embedding one row for each token. */
static void pad(struct model_builder *builder, const char *fact, const char *tensor_name)
{
    struct error unused;
    uint64_t n_tokens;
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    if (!hparams_count(builder->model->hparams, "vocab_size", 0, 1 << 24, &n_tokens, &unused))
        return;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (strstr(tensor->name, tensor_name) != NULL && tensor->rank == 2 && tensor->shape[0] < n_tokens &&
            strstr(tensor->name, "embed_vision") == NULL && strstr(tensor->name, "embed_audio") == NULL)
            dimensions_set(&builder->dimensions, fact, n_tokens - tensor->shape[0]);
    }
}

static bool gemma3n_adjust(struct model_builder *builder, struct error *error)
{
    enum { INPUTS = 4 };
    uint64_t n_inputs;
    pad(builder, "added", "embed_tokens.weight");
    pad(builder, "added_per_layer", "embed_tokens_per_layer.weight");
    return hparams_count(builder->model->hparams, "altup_num_inputs", INPUTS, INPUTS, &n_inputs, error);
}

/* Makes the list have all tokens, not just those in the layers' embedding. */
static bool count_all_tokens(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    uint64_t n_tokens;
    return hparams_count(builder->model->hparams, "vocab_size", 0, UINT32_MAX, &n_tokens, error) &&
           hparams_override(builder->model->hparams, "vocab_size_per_layer_input", n_tokens, error);
}

static const struct config_row gemma3n_config_rows[] = {
    {"activation_sparsity_pattern", FROM_LAYERS, "activation_sparsity_scale", "0.95|0.0"},
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"vocab_size_per_layer_input", FROM_ROWS, "per_layer_token_embd.weight"},
    {"laurel_rank", FROM_ROWS, "blk.0.laurel_l.weight"},
    {0},
};

const struct family gemma3n_family = {
    .name = "gemma3n",
    .summary = "Gemma 3n (language model)",
    .hf = FAMILY_NAMES({"Gemma3nForCausalLM"}, {"Gemma3nForConditionalGeneration"}),
    .tensors = {gemma3n_tensors, qk_norm_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Gemma3nForCausalLM", "gemma3n_text", NULL,
                           CONFIG_TABLES(attention_bias_rows, gemma3_config_rows, gemma3n_config_rows)}),
    .keys = {base_keys, gemma3_keys, gemma3n_keys},
    .vocabs = {&spm_vocab, &hf_gemma_vocab, &bpe_vocab},
    .dimensions = {DIMENSIONS({"last", NULL, 1}, {"added"}, {"added_per_layer"})},
    .adjust = gemma3n_adjust,
    .before_vocab = count_all_tokens,
    .after_vocab = gemma3_after_vocab,
};

/* Gemma 4, the text model: an embedding for each layer, heads of another size in layers with full attention.
 * conversion/gemma.py. */

enum { MAX_HEAD_DIM = 65536 };

#define LAYER "model.layers.{}."

const struct relation_row gemma4_tensors[] = {
    {"model.embed_tokens", "token_embd", "(token + unused) c -> token c", "row"},
    {"model.embed_tokens_per_layer", "per_layer_token_embd", .parallel = "row"},
    {"model.per_layer_model_projection", "per_layer_model_proj", .parallel = "row"},
    {"model.per_layer_projection_norm", "per_layer_proj_norm"},
    {LAYER "per_layer_input_gate", "blk.{}.inp_gate"},
    {LAYER "per_layer_projection", "blk.{}.proj"},
    {LAYER "post_per_layer_input_norm", "blk.{}.post_norm"},
    {LAYER "layer_scalar", "blk.{}.layer_output_scale.weight"},
    {LAYER "post_attention_layernorm", "blk.{}.post_attention_norm"},
    {LAYER "pre_feedforward_layernorm", "blk.{}.ffn_norm"},
    {LAYER "post_feedforward_layernorm", "blk.{}.post_ffw_norm"},
    {LAYER "post_feedforward_layernorm_1", "blk.{}.post_ffw_norm_1"},
    {LAYER "pre_feedforward_layernorm_2", "blk.{}.pre_ffw_norm_2"},
    {LAYER "post_feedforward_layernorm_2", "blk.{}.post_ffw_norm_2"},
    {LAYER "experts.gate_up_proj", "blk.{}.ffn_gate_up_exps.weight", "expert (gate + up) c", "gate up"},
    {LAYER "experts.down_proj", "blk.{}.ffn_down_exps.weight", .parallel = "column"},
    {LAYER "router.proj", "blk.{}.ffn_gate_inp"},
    {LAYER "router.scale", "blk.{}.ffn_gate_inp.scale"},
    {LAYER "router.per_expert_scale", "blk.{}.ffn_down_exps.scale"},
    {0},
};

/* Returns a hyperparameter of the layers with full attention: the model's, or the first in per_layer_config for such a
 * layer; NULL: neither. */
static const struct json *of_full_layers(const struct hparams *hparams, const char *key, const char *key_of_layer)
{
    const struct json *value = hparams_get(hparams, key);
    if (value != NULL && json_type(value) != JSON_NULL)
        return value;
    const struct json *types = hparams_get(hparams, "layer_types");
    const struct json *layers = hparams_get(hparams, "per_layer_config");
    for (struct json_member layer = {0}; json_next_member(layers, &layer);) {
        uint64_t number = strtoull(layer.key, NULL, 10);
        value = json_get(layer.value, key_of_layer);
        if (value != NULL && number < json_count(types) && json_string_is(json_at(types, number), "full_attention"))
            return value;
    }
    return NULL;
}

static bool compute_global_head_dim(const struct model_builder *builder, double *ret_value, struct error *error)
{
    uint64_t size;
    if (!json_u64(of_full_layers(builder->model->hparams, "global_head_dim", "head_dim"), &size) || size > MAX_HEAD_DIM)
        return error_set(error,
                         "config.json: neither global_head_dim nor per_layer_config has the size of a head of full "
                         "attention, of at most %d",
                         MAX_HEAD_DIM);
    *ret_value = (double)size;
    return true;
}

static bool compute_rotary_swa(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double size, factor;
    if (!builder_number(builder, "head_dim", NAN, &size, error) ||
        !builder_number(builder, "rope_parameters.partial_rotary_factor", 1.0, &factor, error))
        return false;
    *ret_value = trunc(size * factor);
    return !isnan(size) || error_set(error, "config.json: head_dim is missing");
}

/* Sets the widths: layers that share the keys of others are twice as wide. */
static bool emit_widths(struct model_builder *builder, struct error *error)
{
    double width, n_shared;
    struct layers layers;
    if (!json_bool(hparams_get(builder->model->hparams, "use_double_wide_mlp"), false))
        return true;
    if (!builder_number(builder, "intermediate_size", 0, &width, error) ||
        !builder_number(builder, "num_kv_shared_layers", 0, &n_shared, error) || !layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = (double)i < (double)layers.n - n_shared ? width : 2 * width;
    return layers_set_i32(builder, "feed_forward_length", &layers, error);
}

static bool emit_kv_heads(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    double full, sliding;
    struct layers layers;
    if (!json_double(of_full_layers(hparams, "num_global_key_value_heads", "num_key_value_heads"), &full) ||
        !json_double(hparams_get(hparams, "num_key_value_heads"), &sliding))
        return true;
    if (!layers_new(builder, &layers, error))
        return false;
    layers_mark(&layers, hparams_get(hparams, "layer_types"), "sliding_attention");
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = layers.values[i] != 0 ? sliding : full;
    return layers_set_i32(builder, "attention.head_count_kv", &layers, error);
}

/* Sets the tokens that the unified model never generates, from generation_config.json. */
static bool emit_suppressed(struct model_builder *builder, struct error *error)
{
    struct document *config;
    struct buffer elements = {0};
    uint64_t n_tokens = 0;
    if (strcmp(builder->hf->name, "Gemma4UnifiedForConditionalGeneration") != 0)
        return true;
    if (!document_open(builder->model->checkpoint, "generation_config.json", &config, error))
        return false;
    const struct json *token = json_first(json_get(document_root(config), "suppress_tokens"));
    for (int64_t id; token != NULL && json_i64(token, &id); token = json_next(token), n_tokens++)
        buffer_append_le(&elements, (uint32_t)id, 4);
    document_close(config);
    gguf_set_array(&builder->model->kvs, "tokenizer.ggml.suppress_tokens", GGUF_I32, n_tokens, &elements);
    return true;
}

#define EXPERT_WIDTHS "expert_intermediate_size|moe_intermediate_size"

static bool require_expert_width(struct model_builder *builder, struct error *error)
{
    return hparams_find(builder->model->hparams, EXPERT_WIDTHS) != NULL ||
           follows_or_refuse(&builder->model->references, GEMMA4_WITHOUT_EXPERTS, error);
}

const struct key_row gemma4_keys[] = {
    {"attention.shared_kv_layers", GGUF_U32, REQUIRED, "num_kv_shared_layers"},
    {"embedding_length_per_layer_input", GGUF_U32, OR_DEFAULT, "hidden_size_per_layer_input", 0},
    {.emit = emit_listed_windows},
    {"attention.key_length", GGUF_U32, .compute = compute_global_head_dim},
    {"attention.value_length", GGUF_U32, .compute = compute_global_head_dim},
    {"attention.key_length_swa", GGUF_U32, REQUIRED, "head_dim"},
    {"attention.value_length_swa", GGUF_U32, REQUIRED, "head_dim"},
    {.emit = require_expert_width, .until = GEMMA4_WITHOUT_EXPERTS},
    {"expert_feed_forward_length", GGUF_U32, IF_PRESENT, EXPERT_WIDTHS},
    {.emit = emit_widths},
    {.emit = emit_kv_heads},
    {"rope.dimension_count", GGUF_U32, .compute = compute_global_head_dim},
    {"rope.dimension_count_swa", GGUF_U32, .compute = compute_rotary_swa},
    {.emit = emit_suppressed},
    {0},
};

bool gemma4_add_rope_factors(struct model_builder *builder, struct error *error)
{
    double size = 0, factor;
    if (!json_string_is(hparams_rope(builder->model->hparams, "rope_type"), "proportional"))
        return error_set(error, "config.json: the rope_type of full attention is not proportional");
    if (!compute_global_head_dim(builder, &size, error) ||
        !builder_number(builder, "rope.partial_rotary_factor", NAN, &factor, error))
        return false;
    if (isnan(factor))
        return error_set(error, "config.json: full attention has no partial_rotary_factor");
    struct arena *arena = builder->model->arena;
    uint64_t n_factors = (uint64_t)size / 2;
    float *factors = arena_array(arena, n_factors + 1, sizeof *factors);
    for (uint64_t i = 0; i < n_factors; i++)
        factors[i] = (double)i < trunc(size * factor / 2) ? 1.0f : 1e30f;
    tensor_set_add_view(builder->model->tensors, "rope_freqs.weight", view_numbers(arena, 1, &n_factors, factors));
    return true;
}

static const char *make_width(const struct config_material *material)
{
    double width;
    bool known = config_number_of_layer(material, "feed_forward_length", 0, &width);
    return known ? arena_printf(material->arena, "%.0f", width) : NULL;
}

static const char *make_double_wide(const struct config_material *material)
{
    double first, last;
    return config_number_of_layer(material, "feed_forward_length", 0, &first) && material->n_layers > 0 &&
                   config_number_of_layer(material, "feed_forward_length", material->n_layers - 1, &last) &&
                   first != last
               ? "true"
               : "false";
}

/* Returns "true" if values are keys: then a layer has no matrix for values. */
static const char *make_keys_are_values(const struct config_material *material)
{
    struct layer_marks keys, values;
    const struct tensor_set *set = material->tensors;
    if (!layer_marks_of_tensors(set, "blk.{}.attn_k.weight", material->n_layers, material->arena, &keys) ||
        !layer_marks_of_tensors(set, "blk.{}.attn_v.weight", material->n_layers, material->arena, &values))
        return "false";
    for (uint64_t i = 0; i < keys.n; i++)
        if (keys.marked[i] && !values.marked[i])
            return "true";
    return "false";
}

/* Returns the rope with the part of a head that rotates: frequencies with factors of 1. */
static const char *make_rope(const struct config_material *material)
{
    enum { MOST = 1 << 16 };
    double base = 1e6, base_swa = 1e4;
    uint64_t n_rotated = 0;
    char digits[3][JSON_FLOAT_TEXT];
    const struct tensor *tensor = tensor_set_find_text(material->tensors, "rope_freqs.weight");
    if (tensor == NULL || tensor->dtype != &f32_dtype || tensor->refusal != NULL || tensor->rank != 1 ||
        tensor->shape[0] == 0 || tensor->shape[0] > MOST)
        return NULL;
    float *factors = arena_array(material->arena, tensor->shape[0], sizeof *factors);
    *material->failed =
        !convert_values(tensor_view(tensor, material->arena), 0, tensor->shape[0], factors, material->error);
    if (*material->failed)
        return NULL;
    while (n_rotated < tensor->shape[0] && factors[n_rotated] == 1)
        n_rotated++;
    gguf_get_f64(material->kvs, "gemma4.rope.freq_base", &base);
    gguf_get_f64(material->kvs, "gemma4.rope.freq_base_swa", &base_swa);
    return arena_printf(
        material->arena,
        "{\n    \"full_attention\": {\n      \"partial_rotary_factor\": %s,\n      \"rope_theta\": %s,\n"
        "      \"rope_type\": \"proportional\"\n    },\n"
        "    \"sliding_attention\": {\n      \"rope_theta\": %s,\n      \"rope_type\": \"default\"\n    "
        "}\n  }",
        json_f32_text((float)n_rotated / (float)tensor->shape[0], digits[0]), json_f32_text((float)base, digits[1]),
        json_f32_text((float)base_swa, digits[2]));
}

const struct config_row gemma4_config_rows[] = {
    {"hidden_activation", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"head_dim", FROM_KEY, "attention.key_length_swa"},
    {"global_head_dim", FROM_KEY, "attention.key_length"},
    {"num_key_value_heads", FROM_MARKED, "attention.head_count_kv", "attention.sliding_window_pattern"},
    {"num_global_key_value_heads", FROM_UNMARKED, "attention.head_count_kv", "attention.sliding_window_pattern"},
    {"attention_k_eq_v", .make = make_keys_are_values},
    {"intermediate_size", .make = make_width},
    {"use_double_wide_mlp", .make = make_double_wide},
    {"sliding_window", FROM_KEY, "attention.sliding_window"},
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"vocab_size_per_layer_input", FROM_ROWS, "per_layer_token_embd.weight"},
    {"enable_moe_block", FROM_TENSOR, "blk.0.ffn_gate_inp.weight"},
    {"top_k_experts", FROM_KEY, "expert_used_count"},
    {"moe_intermediate_size", FROM_KEY, "expert_feed_forward_length"},
    {"rope_parameters", .make = make_rope},
    {"rope_theta", FROM_NOWHERE},
    {"rope_scaling", FROM_NOWHERE},
    {0},
};

const struct family gemma4_family = {
    .name = "gemma4",
    .summary = "Gemma 4 (language model)",
    .hf = FAMILY_NAMES({"Gemma4ForConditionalGeneration"}, {"Gemma4ForCausalLM"},
                       {"Gemma4UnifiedForConditionalGeneration"}),
    .tensors = {gemma4_tensors, qk_norm_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"Gemma4ForCausalLM", "gemma4_text", NULL, CONFIG_TABLES(num_experts_rows, gemma4_config_rows), HALF_NOTE}),
    .keys = {base_keys, gemma3_keys, gemma4_keys},
    .vocabs = {&gemma4_vocab},
    .add_extras = gemma4_add_rope_factors,
    .adjust = gemma3_count_tokens,
};

/* EmbeddingGemma 2: Gemma 4 as an encoder. conversion/gemma.py, EmbeddingGemma2Model. */

#define BLOCK "model.layers.{}.ple_block."

static const struct relation_row gemma_embedding2_tensors[] = {
    {"ple.per_layer_model_projection", "per_layer_model_proj", .parallel = "row"},
    {"ple.per_layer_projection_norm", "per_layer_proj_norm"},
    {BLOCK "per_layer_input_gate", "blk.{}.inp_gate"},
    {BLOCK "per_layer_projection", "blk.{}.proj"},
    {BLOCK "post_per_layer_input_norm", "blk.{}.post_norm"},
    {"embedding_projection", "output", .parallel = "row"},
    {0},
};

/* No layer takes the keys of another one, whatever config.json says. */
static bool gemma_embedding2_adjust(struct model_builder *builder, struct error *error)
{
    return hparams_override(builder->model->hparams, "num_kv_shared_layers", 0, error) &&
           gemma3_count_tokens(builder, error);
}

static const struct key_row gemma_embedding2_keys[] = {
    {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window", .times = 2}, /* of both sides of a token */
    {"embedding_length_out", GGUF_U32, REQUIRED, "embedding_dim"},
    {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
    {.emit = emit_pooling_type},
    {0},
};

/* The class has names without "model.". */
static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char model[] = "model.";
    (void)arena;
    (void)dimensions;
    return direction == BACKWARD && text_starts_with(name, model) ? name + strlen(model) : name;
}

/* Returns the window of one side of a token. */
static const char *make_window(const struct config_material *material)
{
    uint64_t window;
    return gguf_get_u64(material->kvs, "gemma-embedding2.attention.sliding_window", &window)
               ? arena_printf(material->arena, "%" PRIu64, window / 2)
               : NULL;
}

static const char *make_ropes(const struct config_material *material)
{
    double base = 1e6, base_swa = 1e4;
    char digits[2][JSON_FLOAT_TEXT];
    gguf_get_f64(material->kvs, "gemma-embedding2.rope.freq_base", &base);
    gguf_get_f64(material->kvs, "gemma-embedding2.rope.freq_base_swa", &base_swa);
    return arena_printf(
        material->arena,
        "{\n    \"full_attention\": {\n      \"rope_theta\": %s,\n      \"rope_type\": \"default\"\n    },\n"
        "    \"sliding_attention\": {\n      \"rope_theta\": %s,\n      \"rope_type\": \"default\"\n    }\n  }",
        json_f32_text((float)base, digits[0]), json_f32_text((float)base_swa, digits[1]));
}

static const struct config_row gemma_embedding2_config_rows[] = {
    {"sliding_window", .make = make_window},
    {"rope_parameters", .make = make_ropes},
    {"tie_word_embeddings", FROM_TEXT, .text = "true"}, /* output.weight is no head */
    {0},
};

const struct family gemma_embedding2_family = {
    .name = "gemma-embedding2",
    .summary = "EmbeddingGemma 2",
    .since = 11549,
    .hf = FAMILY_NAMES({"EmbeddingGemma2Model"}),
    .tensors = {gemma_embedding2_tensors, gemma4_tensors, qk_norm_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"EmbeddingGemma2Model", "embedding_gemma2_text", NULL,
                           CONFIG_TABLES(gemma4_config_rows, gemma_embedding2_config_rows), HALF_NOTE}),
    .keys = {base_keys, gemma3_keys, gemma4_keys, gemma_embedding2_keys},
    .vocabs = {&gemma4_vocab},
    .adjust = gemma_embedding2_adjust,
    .rename = rename_tensor,
};
