#include "models/families/shared.h"

#include "base/text.h"
#include "formats/documents.h"

#include <math.h>
#include <string.h>
#include <strings.h>

const struct relation_row sparse_moe_tensors[] = {
    {"model.layers.{}.block_sparse_moe.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.block_sparse_moe.experts.{expert}.w1", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.block_sparse_moe.experts.{expert}.w2", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.block_sparse_moe.experts.{expert}.w3", "blk.{}.ffn_up_exps", .parallel = "row"},
    /* until April 2024, one tensor an expert */
    {"model.layers.{}.block_sparse_moe.experts.{expert}.w1", "blk.{}.ffn_gate.{expert}", .backward_only = true},
    {"model.layers.{}.block_sparse_moe.experts.{expert}.w2", "blk.{}.ffn_down.{expert}", .backward_only = true},
    {"model.layers.{}.block_sparse_moe.experts.{expert}.w3", "blk.{}.ffn_up.{expert}", .backward_only = true},
    {0},
};

#define EXPERTS "model.layers.{}.mlp.experts.{expert}."
#define SHARED  "model.layers.{}.mlp.shared_experts."

const struct relation_row expert_tensors[] = {
    {EXPERTS "down_proj", "blk.{}.ffn_down_exps", .parallel = "column"},
    {EXPERTS "gate_proj", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {EXPERTS "up_proj", "blk.{}.ffn_up_exps", .parallel = "row"},
    {0},
};

const struct relation_row expert_gate_first_tensors[] = {
    {EXPERTS "gate_proj", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {EXPERTS "up_proj", "blk.{}.ffn_up_exps", .parallel = "row"},
    {EXPERTS "down_proj", "blk.{}.ffn_down_exps", .parallel = "column"},
    {0},
};

const struct relation_row router_tensors[] = {
    {"model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"},
    {"model.layers.{}.mlp.gate.e_score_correction_bias", "blk.{}.exp_probs_b.bias"},
    {SHARED "down_proj", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {SHARED "gate_proj", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {SHARED "up_proj", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {0},
};

const struct relation_row gpt_tensors[] = {
    {"transformer.wte", "token_embd", .parallel = "row"},
    {"transformer.wpe", "position_embd"},
    {"transformer.ln_f", "output_norm"},
    {"lm_head", "output", .parallel = "row"},
    {"transformer.h.{}.ln_1", "blk.{}.attn_norm"},
    {"transformer.h.{}.attn.c_proj", "blk.{}.attn_output", .parallel = "column"},
    {"transformer.h.{}.ln_2", "blk.{}.ffn_norm"},
    {"transformer.h.{}.mlp.c_fc", "blk.{}.ffn_up", .parallel = "row"},
    {"transformer.h.{}.mlp.c_proj", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

const struct relation_row qk_norm_tensors[] = {
    {"model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm"},
    {"model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm"},
    {0},
};

const struct relation_row plus_one_tensors[] = {
    {"model.norm", "output_norm", .map = &plus_one},
    {"model.layers.{}.input_layernorm", "blk.{}.attn_norm", .map = &plus_one},
    {"model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm", .map = &plus_one},
    {"model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm", .map = &plus_one},
    {"model.layers.{}.enorm", "blk.{}.nextn.enorm", .map = &plus_one},
    {"model.layers.{}.hnorm", "blk.{}.nextn.hnorm", .map = &plus_one},
    {"model.layers.{}.shared_head.norm", "blk.{}.nextn.shared_head_norm", .map = &plus_one},
    {0},
};

const struct dimension_row qkv_dimensions[] = {{"query", NULL, 1}, {"key", NULL, 1}, {"value", NULL, 1}, {0}};

static bool set_rope_f32(struct model_builder *builder, const char *key, const char *from, struct error *error)
{
    const struct key_row rows[] = {{.key = key, .type = GGUF_F32, .from = from}, {0}};
    return builder_emit(builder, rows, error);
}

static const struct key_row yarn_keys[] = {
    {.key = "rope.scaling.original_context_length",
     .type = GGUF_U32,
     .when = REQUIRED,
     .from = "rope.original_max_position_embeddings"},
    {.key = "rope.scaling.yarn_ext_factor", .type = GGUF_F32, .from = "rope.extrapolation_factor"},
    {0},
};

/* Sets rope.scaling.*, only for types of scaling that llama.cpp computes itself. */
static bool emit_rope_scaling(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const char *type = json_string(hparams_rope(hparams, "rope_type"), NULL);
    const struct json *factor = hparams_rope(hparams, "factor");
    bool has_factor = factor != NULL && json_type(factor) != JSON_NULL;
    if (type == NULL)
        return true;
    bool is_linear = strcmp(type, "linear") == 0, is_yarn = strcmp(type, "yarn") == 0;
    bool is_long = strcmp(type, "su") == 0 || strcmp(type, "longrope") == 0;
    if (!is_long && !(has_factor && (is_linear || is_yarn)))
        return true;
    const char *written = is_long ? "longrope" : type;
    gguf_set_text(&builder->model->kvs, builder_key(builder, "rope.scaling.type"), written);
    if (!is_linear && !is_yarn)
        return true;
    if (!set_rope_f32(builder, "rope.scaling.factor", "rope.factor", error))
        return false;
    if (is_linear)
        return true;
    const char *attention = hparams_rope(hparams, "attention_factor") ? "rope.attention_factor" : "rope.attn_factor";
    return builder_emit(builder, yarn_keys, error) &&
           set_rope_f32(builder, "rope.scaling.yarn_attn_factor", attention, error) &&
           set_rope_f32(builder, "rope.scaling.yarn_beta_fast", "rope.beta_fast", error) &&
           set_rope_f32(builder, "rope.scaling.yarn_beta_slow", "rope.beta_slow", error);
}

static bool emit_rope_sections(struct model_builder *builder, struct error *error)
{
    const struct json *sections = hparams_rope(builder->model->hparams, "mrope_section"),
                      *section = json_first(sections);
    struct buffer elements = {0};
    if (!json_is(sections, JSON_ARRAY))
        return true;
    for (unsigned i = 0; i < 4; i++, section = section ? json_next(section) : NULL) {
        int64_t number = 0;
        if (section != NULL && (!json_i64(section, &number) || number < INT32_MIN || number > INT32_MAX)) {
            buffer_free(&elements);
            return error_set(error, "config.json: mrope_section has an element that is not a whole 32-bit number");
        }
        buffer_append_le(&elements, (uint32_t)number, 4);
    }
    gguf_set_array(&builder->model->kvs, builder_key(builder, "rope.dimension_sections"), GGUF_I32, 4, &elements);
    return true;
}

static bool emit_freq_base_swa(struct model_builder *builder, struct error *error)
{
    const struct json *theta = hparams_rope_sliding(builder->model->hparams, "rope_theta");
    double value;
    if (theta == NULL || json_type(theta) == JSON_NULL)
        return true;
    if (!hparams_number(theta, &value))
        return error_set(error, "config.json: the rope_theta of sliding attention is not a number");
    gguf_set_f32(&builder->model->kvs, builder_key(builder, "rope.freq_base_swa"), value);
    return true;
}

static bool emit_causal(struct model_builder *builder, struct error *error)
{
    if (json_is(hparams_get(builder->model->hparams, "is_causal"), JSON_FALSE))
        gguf_set_bool(&builder->model->kvs, builder_key(builder, "attention.causal"), false);
    return true;
}

/* llama.cpp's rope base without the key rope.freq_base. */
static const double default_rope_base = 10000;

bool note_lost_rope(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    const char *key = builder_key(builder, "rope.freq_base");
    double base = default_rope_base, wanted = default_rope_base;
    (void)error;
    gguf_get_f64(&model->kvs, key, &base);
    if (json_double(hparams_rope(model->hparams, "rope_theta"), &wanted) && (float)wanted != (float)base)
        checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                        "config.json has rope_theta %g, which the converter does not write for %s models: llama.cpp "
                        "computes with %g, so its answers differ; -o override-kv=%s=float:%g adds the value",
                        wanted, family_architecture(builder->family), base, key, wanted);
    return true;
}

enum { SIGMOID = 2 };

static const struct {
    const char *name;
    uint32_t id;
} gating_functions[] = {{"softmax", 1}, {"sigmoid", SIGMOID}, {"sqrtsoftplus", 4}};

enum { N_GATING_FUNCTIONS = sizeof gating_functions / sizeof *gating_functions };

const char *config_gating_function(const struct config_material *material)
{
    double id;
    if (!config_number_of_layer(material, "expert_gating_func", 0, &id))
        return NULL;
    for (size_t i = 0; i < N_GATING_FUNCTIONS; i++)
        if (gating_functions[i].id == id)
            return arena_printf(material->arena, "\"%s\"", gating_functions[i].name);
    return NULL;
}

static bool emit_gating_function(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *value = hparams_find(hparams, "score_function|scoring_func|score_func|moe_router_activation|"
                                                     "moe_router_activation_func|expert_selection_fn");
    if (value == NULL && follows(&builder->model->references, ROUTER_SCORE_FUNC))
        value = hparams_get(hparams, "router_score_func");
    if (value == NULL || json_type(value) == JSON_NULL)
        return true;
    for (size_t i = 0; i < N_GATING_FUNCTIONS; i++)
        if (json_string_is(value, gating_functions[i].name)) {
            gguf_set_u32(&builder->model->kvs, builder_key(builder, "expert_gating_func"), gating_functions[i].id);
            return true;
        }
    const char *name = json_string(value, NULL);
    if (name != NULL && strcmp(name, "noaux_tc") == 0) { /* which defines the choice of groups */
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "expert_gating_func"), SIGMOID);
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "the converter refuses scoring_func noaux_tc in config.json; wfs reads it as sigmoid, which "
                        "such models use");
        return true;
    }
    return error_set(error, "config.json: unknown expert gating function '%.64s'", name ? name : "?");
}

const struct key_row base_keys[] = {
    {.key = "block_count", .type = GGUF_U32, .when = REQUIRED, .from = BLOCK_COUNT},
    {.key = "context_length",
     .type = GGUF_U32,
     .from = "max_position_embeddings|n_ctx|n_positions|max_length|max_sequence_length|model_max_length"},
    {.key = "embedding_length", .type = GGUF_U32, .from = "hidden_size|n_embd|dim"},
    {.key = "feed_forward_length",
     .type = GGUF_U32,
     .from = "prefix_dense_intermediate_size|dense_intermediate_size|intermediate_size|n_inner|hidden_dim"},
    {.key = "attention.head_count", .type = GGUF_U32, .from = "num_attention_heads|n_head|n_heads"},
    {.key = "attention.head_count_kv", .type = GGUF_U32, .from = "num_key_value_heads|n_kv_heads"},
    {.emit = emit_causal},
    {.emit = emit_rope_scaling},
    {.emit = emit_rope_sections},
    {.key = "rope.freq_base", .type = GGUF_F32, .from = "rope.rope_theta"},
    {.emit = emit_freq_base_swa},
    {.key = "attention.layer_norm_rms_epsilon", .type = GGUF_F32, .from = "rms_norm_eps|norm_eps"},
    {.key = "attention.layer_norm_epsilon", .type = GGUF_F32, .from = "layer_norm_eps|layer_norm_epsilon|norm_epsilon"},
    {.key = "expert_count", .type = GGUF_U32, .from = "num_local_experts|num_experts|n_routed_experts"},
    {.key = "expert_used_count", .type = GGUF_U32, .from = "num_experts_per_tok|num_experts_per_token|top_k_experts"},
    {.key = "expert_group_count", .type = GGUF_U32, .from = "n_group"},
    {.key = "expert_group_used_count", .type = GGUF_U32, .from = "topk_group"},
    {.emit = emit_gating_function},
    {.key = "attention.key_length", .type = GGUF_U32, .from = "head_dim"},
    {.key = "attention.value_length", .type = GGUF_U32, .from = "head_dim"},
    FILE_TYPE_KEY,
    {0},
};

const struct key_row moe_keys[] = {
    {.key = "expert_feed_forward_length", .type = GGUF_U32, .from = "moe_intermediate_size"},
    {.key = "expert_shared_feed_forward_length", .type = GGUF_U32, .from = "shared_expert_intermediate_size"},
    {0},
};

const struct config_row silu_rows[] = {{"hidden_act", FROM_TEXT, .text = "'silu'"}, {0}};
const struct config_row attention_bias_rows[] = {{"attention_bias", FROM_TENSOR, "blk.0.attn_q.bias"}, {0}};
const struct config_row mlp_bias_rows[] = {{"mlp_bias", FROM_TENSOR, "blk.0.ffn_up.bias"}, {0}};
const struct config_row no_window_rows[] = {{"sliding_window", FROM_TEXT, .text = "null"}, {0}};
const struct config_row num_experts_rows[] = {{"num_experts", FROM_KEY, "expert_count"}, {0}};

static uint32_t pooling_type(const struct json *config)
{
    static const struct {
        const char *flag, *mode;
        uint32_t id;
    } modes[] = {{"pooling_mode_mean_tokens", "mean", 1},
                 {"pooling_mode_cls_token", "cls", 2},
                 {"pooling_mode_lasttoken", "lasttoken", 3}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (json_bool(json_get(config, modes[i].flag), false))
            return modes[i].id;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (json_string_is(json_get(config, "pooling_mode"), modes[i].mode))
            return modes[i].id;
    return 0;
}

/* Returns the directory of the first module whose type ends with "Pooling"; NULL: none. */
static const char *pooling_directory(const struct json *modules)
{
    for (const struct json *module = json_first(modules); module != NULL; module = json_next(module)) {
        const char *type = json_string(json_get(module, "type"), NULL);
        if (type != NULL && text_ends_with(type, "Pooling"))
            return json_string(json_get(module, "path"), NULL);
    }
    return NULL;
}

/* Gets the kind of pooling from a file; 0: it names none that GGUF has, or is missing. A file that modules.json names
 * must be there. */
static bool read_pooling(const struct checkpoint *checkpoint, const char *name, bool is_named,
                         uint32_t (*type_of)(const struct json *), uint32_t *ret_type, struct error *error)
{
    struct document *config;
    if (!document_open_if_valid(checkpoint, name, &config, error))
        return false;
    if (config == NULL && is_named)
        return error_set(error,
                         "modules.json names %s, which is missing or not valid: download it, as the kind of pooling "
                         "is there",
                         name);
    *ret_type = type_of(document_root(config));
    document_close(config);
    return true;
}

static uint32_t pooling_of_embedding_config(const struct json *config)
{
    return json_string_is(json_get(config, "pooling"), "last_token") ? 3 : 0;
}

/* Gets the kind of pooling; 0: no file names one. */
static bool find_pooling(struct model_builder *builder, uint32_t *ret_type, struct error *error)
{
    const struct gguf_model *model = builder->model;
    struct document *modules;
    *ret_type = 0;
    if (!document_open_if_valid(model->checkpoint, "modules.json", &modules, error))
        return false;
    const char *directory = pooling_directory(document_root(modules));
    char *name = directory ? arena_printf(model->arena, "%s/config.json", directory) : NULL;
    document_close(modules);
    if (name != NULL)
        return read_pooling(model->checkpoint, name, true, pooling_type, ret_type, error) &&
               (*ret_type != 0 || error_set(error, "%s: GGUF does not support this kind of pooling", name));
    return !follows(&model->references, POOLING_OF_EMBEDDING_CONFIG) ||
           read_pooling(model->checkpoint, "embedding_config.json", false, pooling_of_embedding_config, ret_type,
                        error);
}

static bool emit_classifier_pooling(struct model_builder *builder, struct error *error)
{
    const struct json *pooling = hparams_get(builder->model->hparams, "classifier_pooling");
    bool is_mean = json_string_is(pooling, "mean");
    if (pooling == NULL || json_is(pooling, JSON_NULL))
        return true;
    if (!is_mean && !json_string_is(pooling, "cls"))
        return error_set(error, "config.json: classifier_pooling is neither cls nor mean");
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "classifier.pooling_type"), is_mean ? 1 : 2);
    return true;
}

static bool emit_classifier_activation(struct model_builder *builder, struct error *error)
{
    static const char *const known[] = {"gelu", "silu", "tanh"};
    const struct json *activation = hparams_get(builder->model->hparams, "classifier_activation");
    if (activation == NULL || json_is(activation, JSON_NULL))
        return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (json_string_is(activation, known[i])) {
            gguf_set_text(&builder->model->kvs, builder_key(builder, "classifier.activation"), known[i]);
            return true;
        }
    return error_set(error, "config.json: classifier_activation is not gelu, silu or tanh");
}

/* Sets how a classifier pools, and its activation. */
static const struct key_row classifier_keys[] = {
    {.emit = emit_classifier_pooling, .since = CLASSIFIER_POOLING},
    {.emit = emit_classifier_activation, .since = CLASSIFIER_ACTIVATION},
    {0},
};

bool emit_pooling_type(struct model_builder *builder, struct error *error)
{
    uint32_t type;
    if (!find_pooling(builder, &type, error))
        return false;
    if (type != 0)
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "pooling_type"), type);
    return builder_emit(builder, classifier_keys, error);
}

/* Gets hidden_size and the number of heads, for values computed from them. */
static bool head_dimensions(const struct model_builder *builder, uint64_t *ret_hidden, uint64_t *ret_heads,
                            struct error *error)
{
    struct error unused;
    *ret_hidden = dimensions_get(&builder->dimensions, "hidden");
    if (!hparams_count(builder->model->hparams, HEAD_COUNT, 1, INT32_MAX, ret_heads, &unused))
        *ret_heads = dimensions_get(&builder->dimensions, "head");
    if (*ret_hidden != 0 && *ret_heads != 0)
        return true;
    return error_set(error, "config.json: hidden_size or num_attention_heads is missing, 0, or too large");
}

bool compute_hidden_per_head(const struct model_builder *builder, double *ret_value, struct error *error)
{
    uint64_t hidden, heads;
    if (!head_dimensions(builder, &hidden, &heads, error))
        return false;
    *ret_value = (double)(hidden / heads);
    return true;
}

bool compute_head_dim(const struct model_builder *builder, double *ret_value, struct error *error)
{
    uint64_t head_dim;
    if (!json_u64(hparams_get(builder->model->hparams, "head_dim"), &head_dim))
        return compute_hidden_per_head(builder, ret_value, error);
    *ret_value = (double)head_dim;
    return true;
}

bool compute_rotary_of_hidden(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double factor;
    uint64_t hidden, heads;
    if (!head_dimensions(builder, &hidden, &heads, error) ||
        !builder_number(builder, "rope.partial_rotary_factor", 1.0, &factor, error))
        return false;
    *ret_value = floor(trunc(factor * (double)hidden) / (double)heads);
    return true;
}

bool compute_rotary_of_head(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double factor;
    uint64_t hidden, heads;
    if (!head_dimensions(builder, &hidden, &heads, error))
        return false;
    const char *from = hparams_get(builder->model->hparams, "rotary_pct") ? "rotary_pct" : "rope.partial_rotary_factor";
    if (!builder_number(builder, from, NAN, &factor, error))
        return false;
    if (isnan(factor))
        return error_set(error, "config.json: rotary_pct and partial_rotary_factor are missing");
    *ret_value = trunc(factor * (double)(hidden / heads));
    return true;
}

bool rotary_of_head_dim(const struct model_builder *builder, double otherwise, double *ret_value, struct error *error)
{
    double head_dim, factor;
    if (!compute_head_dim(builder, &head_dim, error) ||
        !builder_number(builder, "rope.partial_rotary_factor", otherwise, &factor, error))
        return false;
    *ret_value = trunc(head_dim * factor);
    return !isnan(factor) || error_set(error, "config.json: partial_rotary_factor is missing");
}

bool compute_rotary_of_half(const struct model_builder *builder, double *ret_value, struct error *error)
{
    return rotary_of_head_dim(builder, 0.5, ret_value, error);
}

static const char template_key[] = "tokenizer.chat_template";

bool hold_chat_template(struct model_builder *builder, struct error *error)
{
    gguf_set_bool(&builder->model->kvs, template_key, false);
    return true;
}

bool release_chat_template(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    struct gguf_kvs *kvs = &builder->model->kvs;
    const struct gguf_kv *kv = gguf_kvs_find(kvs, template_key);
    if (kv == NULL || kv->type == GGUF_STRING)
        return true;
    builder->model->chat_template_place = (size_t)(kv - kvs->kvs);
    gguf_kvs_remove(kvs, template_key);
    checkpoint_note(
        input->checkpoint, SUBJECT_GGUF,
        "no chat template: the files have none, and wfs does not have the converter's template for this model; "
        "-o chat-template=FILE adds a template");
    return true;
}

/* rope_freqs.weight: the factors by which Llama 3 slows its rotary frequencies, as a tensor.
 *
 * Computed in F32, each operation rounded in the order in which torch does it (conversion/llama.py,
 * generate_extra_tensors), so that the bits are the same. */

enum { MAX_ROTARY_DIMENSIONS = 65536 };

static bool read_scaling(const struct model_builder *builder, double factor, struct rope_freqs *ret_scaling,
                         struct error *error)
{
    return builder_number(builder, "rope.rope_theta", 10000.0, &ret_scaling->theta, error) &&
           builder_number(builder, "rope.factor", factor, &ret_scaling->factor, error) &&
           builder_number(builder, "rope.low_freq_factor", 1.0, &ret_scaling->low_factor, error) &&
           builder_number(builder, "rope.high_freq_factor", 4.0, &ret_scaling->high_factor, error) &&
           builder_number(builder, "rope.original_max_position_embeddings", 8192, &ret_scaling->old_context, error);
}

float rope_freq_factor(const struct rope_freqs *scaling, float exponent)
{
    float frequency = 1.0f / powf((float)scaling->theta, exponent);
    float wavelength = (1.0f / frequency) * (float)(2 * M_PI);
    if ((double)wavelength < scaling->old_context / scaling->high_factor)
        return 1.0f;
    if ((double)wavelength > scaling->old_context / scaling->low_factor)
        return (float)scaling->factor;
    float smooth = ((1.0f / wavelength) * (float)scaling->old_context - (float)scaling->low_factor) /
                   (float)(scaling->high_factor - scaling->low_factor);
    return 1.0f / ((1.0f - smooth) / (float)scaling->factor + smooth);
}

/* Like rope_freq_factor(), for classes that compute with Python's numbers, from a frequency in F32. */
static float factor_in_doubles(const struct rope_freqs *scaling, float exponent)
{
    double wavelength = 2 * M_PI / (double)(1.0f / powf((float)scaling->theta, exponent));
    if (wavelength < scaling->old_context / scaling->high_factor)
        return 1.0f;
    if (wavelength > scaling->old_context / scaling->low_factor)
        return (float)scaling->factor;
    double smooth =
        (scaling->old_context / wavelength - scaling->low_factor) / (scaling->high_factor - scaling->low_factor);
    return (float)(1.0 / ((1.0 - smooth) / scaling->factor + smooth));
}

bool rope_freqs_add(struct model_builder *builder, double factor, double turned, double head_dim, bool in_doubles,
                    struct error *error)
{
    struct rope_freqs scaling;
    if (!read_scaling(builder, factor, &scaling, error))
        return false;
    if (!(turned >= 1 && turned <= head_dim && head_dim <= MAX_ROTARY_DIMENSIONS))
        return error_set(error, "config.json: head_dim is %.17g, of which %.17g are turned, outside 1 to %d", head_dim,
                         turned, MAX_ROTARY_DIMENSIONS);
    struct arena *arena = builder->model->arena;
    uint64_t n_turned = ((uint64_t)turned + 1) / 2, n = (uint64_t)head_dim / 2;
    uint64_t n_factors = n_turned > n ? n_turned : n;
    float *factors = arena_array(arena, n_factors, sizeof *factors);
    for (uint64_t i = 0; i < n_factors; i++)
        factors[i] = 1;
    for (uint64_t i = 0; i < n_turned; i++) {
        float exponent = (float)(2 * i) / (float)turned;
        factors[i] = in_doubles ? factor_in_doubles(&scaling, exponent) : rope_freq_factor(&scaling, exponent);
    }
    tensor_set_add_view(builder->model->tensors, "rope_freqs.weight", view_numbers(arena, 1, &n_factors, factors));
    return true;
}

bool rope_is_llama3(const struct model_builder *builder)
{
    const char *type = json_string(hparams_rope(builder->model->hparams, "rope_type"), NULL);
    return type != NULL && strcasecmp(type, "llama3") == 0;
}

bool add_rope_freqs(struct model_builder *builder, struct error *error)
{
    double dimensions;
    if (!rope_is_llama3(builder))
        return true;
    return compute_head_dim(builder, &dimensions, error) &&
           rope_freqs_add(builder, 8, dimensions, dimensions, false, error);
}
