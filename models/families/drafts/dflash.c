/* conversion/qwen.py; for Muse Glimmer's draft, conversion/muse_glimmer.py. */
#include "models/families/drafts/dflash.h"

#include "base/text.h"
#include "models/config/config_class.h"
#include "models/families/layers.h"
#include "models/families/qwen/qwen.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const struct relation_row dflash_tensors[] = {
    {"model.t2d", NULL},
    {"model.d2t", NULL},
    {"d2t", "d2t", .map = &draft_steps, .backward_only = true},
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", "(head pair half) ... -> (head half pair) ...", "head",
     .when = "adjacent_pairs"},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", "(kv_head pair half) ... -> (kv_head half pair) ...",
     "kv_head", .when = "adjacent_pairs"},
    {"model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm", "(pair half) -> (half pair)", .when = "adjacent_pairs"},
    {"model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm", "(pair half) -> (half pair)", .when = "adjacent_pairs"},
    {"model.layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight", .parallel = "row"},
    {"model.layers.{}.attention_conv.base_kernel", "blk.{}.attn_conv_base"},
    {"model.layers.{}.attention_conv.kernel_projection", "blk.{}.attn_conv_proj"},
    {"model.layers.{}.mlp_conv.base_kernel", "blk.{}.ffn_conv_base"},
    {"model.layers.{}.mlp_conv.kernel_projection", "blk.{}.ffn_conv_proj"},
    {"model.candidate_selector.predecessor_codebook", "selector_predecessor.weight"},
    {"model.candidate_selector.successor_codebook", "selector_successor.weight"},
    {"model.candidate_selector.hidden_projection", "selector_hidden"},
    {"model.fc", "fc"},
    {"model.hidden_norm", "enc.output_norm"},
    {"model.markov_head.markov_w1", "markov_w1", .parallel = "row"},
    {"model.markov_head.markov_w2", "markov_w2", .parallel = "row"},
    {"model.confidence_head.proj", "conf_proj"},
    {"model.lm_head", "output", .parallel = "row"},
    {0},
};

const char *dflash_rename(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                          const char *name)
{
    static const char prefix[] = "model.";
    if (direction == BACKWARD)
        return text_starts_with(name, prefix) ? name + strlen(prefix) : name;
    if (!text_starts_with(name, prefix))
        name = arena_printf(arena, "%s%s", prefix, name);
    bool is_left_out =
        (text_starts_with(name, "model.embed_tokens.") && dimensions_get(dimensions, "embedding") == 0) ||
        (text_starts_with(name, "model.lm_head.") && dimensions_get(dimensions, "own_head") == 0);
    return is_left_out ? NULL : name;
}

extern const struct family dflash_family, muse_glimmer_assistant_family;

static bool is_dspark(const struct model_builder *builder)
{
    return strstr(builder->hf->name, "DSpark") != NULL;
}

static bool is_given(const struct json *value)
{
    return value != NULL && json_type(value) != JSON_NULL;
}

bool dflash_adjust(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *smaller = hparams_get(hparams, "draft_vocab_size"),
                      *neox = hparams_get(hparams, "rope_is_neox_style");
    double all, drafted;
    bool has_all =
        !is_given(smaller) || (json_double(smaller, &drafted) && drafted == 0) ||
        (json_double(hparams_get(hparams, "vocab_size"), &all) && json_double(smaller, &drafted) && drafted == all);
    bool keeps = !is_dspark(builder) || !has_all || follows(&builder->model->references, DFLASH_CAUSAL);
    dimensions_set(&builder->dimensions, "embedding",
                   keeps && json_bool(hparams_get(hparams, "has_embed_tokens"), true));
    dimensions_set(&builder->dimensions, "adjacent_pairs", neox != NULL && !hparams_truth(neox));
    dimensions_set(&builder->dimensions, "own_head", !is_dspark(builder) || !has_all);
    return true;
}

const struct json *dflash_own(const struct model_builder *builder, const char *key)
{
    return json_get(hparams_get(builder->model->hparams, "dflash_config"), key);
}

const struct json *dflash_value(const struct model_builder *builder, const char *key)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *own = dflash_own(builder, key);
    bool is_strict =
        hparams_get(hparams, "dflash_config") != NULL && !follows(&builder->model->references, DFLASH_KEYS);
    return own != NULL || is_strict ? own : hparams_get(hparams, key);
}

/* Numbers of dflash_config, or of config.json with `is_of_both`, in the order of their keys. */
static const struct number {
    const char *from, *key;
    bool is_whole, is_of_both, is_positive; /* is_positive: not set otherwise */
} numbers[] = {
    {"conv_kernel_size", "conv_kernel_size", .is_whole = true},
    {"conv_group_size", "conv_group_size", .is_whole = true},
    {"selector_rank", "selector_rank", .is_whole = true},
    {"selector_top_k", "selector_top_k", .is_whole = true},
    {"output_multiplier", "logit_scale", .is_of_both = true},
    {"final_logit_softcapping", "final_logit_softcapping", .is_of_both = true, .is_positive = true},
    {"input_embedding_scale", "embedding_scale", .is_of_both = true},
};

static bool set_number(struct model_builder *builder, const struct json *value, const char *key, bool is_whole,
                       struct error *error)
{
    struct gguf_kvs *kvs = &builder->model->kvs;
    double number;
    if (!json_double(value, &number) || (is_whole && !(number >= 0 && number <= UINT32_MAX)))
        return error_set(error, "config.json: the value for %s is not a number", key);
    if (is_whole)
        gguf_set_u32(kvs, builder_key(builder, key), (uint32_t)number);
    else
        gguf_set_f32(kvs, builder_key(builder, key), (float)number);
    return true;
}

static bool emit_numbers(struct model_builder *builder, struct error *error)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct number *row = &numbers[i];
        const struct json *value = row->is_of_both ? dflash_value(builder, row->from) : dflash_own(builder, row->from);
        double number;
        if (!is_given(value) || (row->is_positive && json_double(value, &number) && number <= 0))
            continue;
        if (!set_number(builder, value, row->key, row->is_whole, error))
            return false;
    }
    return true;
}

static bool emit_block_size(struct model_builder *builder, struct error *error)
{
    static const char key[] = "block_size";
    enum { USUAL = 16 };
    const struct json *value = follows(&builder->model->references, DFLASH_KEYS)
                                   ? dflash_value(builder, key)
                                   : hparams_get(builder->model->hparams, key);
    if (is_given(value))
        return set_number(builder, value, key, true, error);
    gguf_set_u32(&builder->model->kvs, builder_key(builder, key), USUAL);
    return true;
}

static bool emit_rotary(struct model_builder *builder, struct error *error)
{
    static const char key[] = "partial_rotary_factor";
    const struct hparams *hparams = builder->model->hparams;
    const struct json *scale = dflash_own(builder, "attention_value_scale"),
                      *value = text_starts_with(builder->hf->name, "Gemma4") ? hparams_rope(hparams, key)
                                                                             : hparams_rope_of_all(hparams, key);
    double share, rotary;
    if (json_double(value, &share)) {
        if (!compute_head_dim(builder, &rotary, error))
            return false;
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "rope.dimension_count"), (uint32_t)(rotary * share));
    }
    return !is_given(scale) || set_number(builder, scale, "attention.value_scale", false, error);
}

/* Sets the scale that a Gemma gives its embedding, which the draft shares. */
static bool emit_scale_of_target(struct model_builder *builder, struct error *error)
{
    struct document *config;
    double width;
    if (is_given(dflash_value(builder, "input_embedding_scale")))
        return true;
    if (!draft_open_target(builder, &config, error))
        return false;
    const char *class_name = json_string(json_first(json_get(document_root(config), "architectures")), NULL);
    if (class_name != NULL && text_starts_with(class_name, "Gemma") &&
        json_double(draft_target_value(config, "hidden_size"), &width))
        gguf_set_f32(&builder->model->kvs, builder_key(builder, "embedding_scale"), (float)sqrt(width));
    document_close(config);
    return true;
}

static bool emit_causal_of_draft(struct model_builder *builder, struct error *error)
{
    const struct json *value = hparams_get(builder->model->hparams, "is_causal");
    if (!is_given(value))
        value = dflash_own(builder, "causal");
    if (is_given(value))
        gguf_set_bool(&builder->model->kvs, builder_key(builder, "attention.causal"), json_bool(value, false));
    return true;
}

static bool find_head_dim(const struct model_builder *builder, double *ret_head_dim, struct error *error)
{
    double width, n_heads;
    if (!builder_number(builder, "head_dim", 0, ret_head_dim, error) || *ret_head_dim > 0)
        return *ret_head_dim > 0;
    if (!builder_number(builder, "hidden_size", 0, &width, error) ||
        !builder_number(builder, "num_attention_heads", 0, &n_heads, error))
        return false;
    if (!(n_heads >= 1 && width >= 0 && width <= UINT32_MAX))
        return error_set(error, "config.json: hidden_size or num_attention_heads is missing");
    *ret_head_dim = floor(width / n_heads);
    return true;
}

/* Sets sections of which only the first rotates, if the target's rope has some. */
static bool emit_sections(struct model_builder *builder, struct error *error)
{
    struct document *config;
    struct buffer elements = {0};
    double head_dim;
    if (!draft_open_target(builder, &config, error))
        return false;
    const struct json *rope = draft_target_value(config, "rope_parameters");
    if (json_count_members(rope) == 0)
        rope = draft_target_value(config, "rope_scaling");
    bool has_sections = json_get(rope, "mrope_section") != NULL;
    document_close(config);
    if (!has_sections)
        return true;
    if (!find_head_dim(builder, &head_dim, error))
        return false;
    buffer_append_le(&elements, (uint32_t)head_dim / 2, 4);
    for (unsigned i = 1; i < 4; i++)
        buffer_append_le(&elements, 0, 4);
    gguf_set_array(&builder->model->kvs, builder_key(builder, "rope.dimension_sections"), GGUF_I32, 4, &elements);
    return true;
}

bool dspark_emit(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    struct gguf_kvs *kvs = &builder->model->kvs;
    const struct tensor_set *set = builder->model->tensors;
    bool is_of_eagle = hparams_get(hparams, "transformer_layer_config") != NULL ||
                       hparams_get(hparams, "aux_hidden_state_layer_ids") != NULL;
    if (!is_dspark(builder))
        return true;
    gguf_set_bool(kvs, builder_key(builder, "sample_from_anchor"),
                  json_bool(hparams_get(hparams, "sample_from_anchor"), !is_of_eagle));
    if (follows(&builder->model->references, DFLASH_CAUSAL))
        gguf_set_bool(kvs, builder_key(builder, "has_confidence_head"),
                      tensor_set_find_text(set, "conf_proj.weight") != NULL);
    return true;
}

/* Sets the target layers, whose numbers begin with the embedding; those of speculators do already. */
static bool emit_target_layers(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *inputs = hparams_get(hparams, "aux_hidden_state_layer_ids");
    if (is_dspark(builder) && is_given(inputs) && hparams_get(hparams, "dflash_config") == NULL)
        return draft_list_target_layers(builder, inputs, 0, error);
    return draft_list_target_layers(builder, dflash_value(builder, "target_layer_ids"), 1, error);
}

/* Returns Qwen's class, if config.json names it and it takes config.json: then layer_types and sliding_window are what
 * it makes of them. */
static const struct config_class *qwen_class(const struct hparams *hparams)
{
    const char *type = json_string(json_get(hparams_raw(hparams), "model_type"), NULL);
    const struct config_class *class = type != NULL && text_starts_with(type, "qwen") ? config_class_find(type) : NULL;
    bool is_taken = class != NULL && !class->is_raw && config_class_takes(class, hparams_raw(hparams));
    return is_taken ? class : NULL;
}

/* Marks the layers that Qwen's class gives a window if config.json names none. Speculators keep the sizes of the layers
 * apart, where the class does not look: it has its own number of layers then. */
static bool mark_by_class(struct model_builder *builder, struct error *error)
{
    enum { LAYERS_OF_CLASS = 32, FIRST_OF_CLASS = 28 };
    const struct json *config = hparams_raw(builder->model->hparams);
    uint64_t window, first = FIRST_OF_CLASS;
    bool is_apart = json_get(config, "transformer_layer_config") != NULL,
         slides =
             hparams_truth(json_get(config, "use_sliding_window")) &&
             (json_u64(json_get(config, "sliding_window"), &window) || !is_given(json_get(config, "sliding_window")));
    struct layers layers;
    if (!layers_new(builder, &layers, error))
        return false;
    if (is_apart && !json_u64(json_get(config, "num_hidden_layers"), &layers.n))
        layers.n = LAYERS_OF_CLASS;
    if (layers.n > MAX_LISTED_LAYERS)
        return error_set(error, "config.json: num_hidden_layers is too large");
    layers.values = arena_array(builder->model->arena, layers.n + 1, sizeof *layers.values);
    json_u64(json_get(config, "max_window_layers"), &first);
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = slides && i >= first;
    layers_set(builder, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}

/* Finds the window of the draft; 0: it has none. dflash_config has a word of its own for it. */
static bool find_window(const struct model_builder *builder, bool *ret_of_all, uint64_t *ret_window)
{
    enum { WINDOW_OF_CLASS = 4096 };
    const struct hparams *hparams = builder->model->hparams;
    bool has_own = follows(&builder->model->references, DFLASH_CAUSAL);
    bool is_usual = hparams_truth(hparams_get(hparams, "use_sliding_window"));
    bool is_own = has_own && hparams_truth(dflash_own(builder, "use_swa"));
    *ret_of_all = is_own;
    if (!is_usual && !is_own)
        return false;
    if (has_own && json_u64(dflash_own(builder, "swa_window_size"), ret_window) && *ret_window > 0)
        return true;
    const struct json *raw = hparams_raw(hparams);
    bool is_own_size = json_get(json_get(raw, "transformer_layer_config"), "sliding_window") != NULL;
    if (hparams_truth(json_get(raw, "use_sliding_window")) && json_get(raw, "sliding_window") == NULL && !is_own_size &&
        qwen_class(hparams) != NULL) {
        *ret_window = WINDOW_OF_CLASS;
        return true;
    }
    return (is_usual || is_own_size || qwen_class(hparams) == NULL) &&
           json_u64(hparams_get(hparams, "sliding_window"), ret_window) && *ret_window > 0;
}

static bool mark_layers(struct model_builder *builder, bool all, struct error *error)
{
    struct layers layers;
    if (!layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = all;
    layers_set(builder, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}

static bool emit_window(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    bool of_all;
    uint64_t window;
    if (!find_window(builder, &of_all, &window))
        return true;
    if (window > UINT32_MAX)
        return error_set(error, "config.json: the sliding window is too large");
    const struct json *types = hparams_get(hparams, "layer_types");
    bool is_left_null = json_get(json_get(hparams_raw(hparams), "transformer_layer_config"), "layer_types") != NULL;
    bool is_listed = json_count(types) > 0 || (!json_is(types, JSON_ARRAY) && qwen_class(hparams) && !is_left_null);
    bool is_newer = follows(&builder->model->references, DFLASH_ALL_WINDOWS);
    if (!is_listed && !is_newer)
        return true;
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "attention.sliding_window"), (uint32_t)window);
    if (of_all && is_newer)
        return mark_layers(builder, true, error);
    if (json_is(types, JSON_ARRAY))
        return emit_listed_windows(builder, error);
    return !is_listed || mark_by_class(builder, error);
}

/* Adds the target's tokens if the draft has fewer. */
static bool add_tokens(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *head = hparams_get(hparams, "markov_head_type");
    uint64_t n_vocab, n_drafted = 0;
    if (!is_dspark(builder))
        return tensor_set_find_text(builder->model->checkpoint->tensors, "d2t") == NULL ||
               error_set(error, "tensor 'd2t': only a DSpark draft can have fewer tokens than the base");
    if (is_given(head) && !json_string_is(head, "vanilla"))
        return error_set(error, "config.json: markov_head_type is not 'vanilla', the only one that is supported");
    json_u64(hparams_get(hparams, "draft_vocab_size"), &n_drafted);
    if (!json_u64(hparams_get(hparams, "vocab_size"), &n_vocab))
        return error_set(error, "config.json: vocab_size is not a number of tokens");
    if (n_drafted > n_vocab)
        return error_set(error, "config.json: draft_vocab_size is %llu, more than the %llu of vocab_size",
                         (unsigned long long)n_drafted, (unsigned long long)n_vocab);
    const struct tensor *table = tensor_set_find_text(builder->model->checkpoint->tensors, "d2t");
    if (table == NULL && n_drafted > 0 && n_drafted < n_vocab)
        return error_set(error, "draft_vocab_size is below vocab_size, but there is no tensor 'd2t'");
    return draft_add_tokens(builder, n_vocab, error);
}

static void put_tokens_last(struct model_builder *builder)
{
    builder_put_last(builder, "d2t");
}

/* Returns the token that stands for unknown ones: DFlash has it in dflash_config only. NULL: none. */
static const struct json *mask_token(const struct model_builder *builder)
{
    static const char key[] = "mask_token_id";
    const struct hparams *hparams = builder->model->hparams;
    if (hparams_get(hparams, "dflash_config") != NULL)
        return dflash_own(builder, key);
    bool is_flat = is_dspark(builder) || builder->family == &muse_glimmer_assistant_family;
    return is_flat ? hparams_get(hparams, key) : NULL;
}

bool dflash_check_target(struct model_builder *builder, struct error *error)
{
    struct document *config;
    if (!draft_open_target(builder, &config, error))
        return false;
    document_close(config);
    bool has_mask = builder->family == &dflash_family && draft_has_mask(builder->model->checkpoint) &&
                    follows(&builder->model->references, MASK_EMBEDDING);
    return (!has_mask || draft_add_masked(builder, mask_token(builder), error)) && add_tokens(builder, error);
}

static bool set_mask_token(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    uint64_t id;
    const struct json *value = mask_token(builder);
    if (value == NULL || json_type(value) == JSON_NULL)
        return true;
    if (!json_u64(value, &id) || id > UINT32_MAX)
        return error_set(error, "config.json: mask_token_id is not a token");
    gguf_set_u32(&builder->model->kvs, "tokenizer.ggml.mask_token_id", (uint32_t)id);
    return true;
}

const struct key_row dflash_keys[] = {
    {.emit = emit_pooling_type},
    {.emit = emit_rotary, .since = DFLASH_ROTARY},
    {.emit = emit_block_size},
    {.emit = emit_numbers, .since = DFLASH_KEYS},
    {.emit = emit_scale_of_target, .since = DFLASH_ROTARY},
    {.emit = emit_target_layers},
    {.emit = emit_window},
    {.emit = emit_causal_of_draft, .since = DFLASH_CAUSAL},
    {.emit = emit_sections, .since = DFLASH_KEYS},
    {0},
};

/* Returns the target layers, counted without the embedding. */
static const char *make_target_layers(const struct config_material *material)
{
    enum { MOST_LAYERS = 1024 };
    struct gguf_array layers;
    struct error unused;
    const char *list = "";
    uint64_t layer;
    if (!gguf_get_array(material->kvs, "dflash.target_layers", material->arena, &layers, &unused) ||
        layers.count > MOST_LAYERS)
        return NULL;
    for (uint64_t i = 0; i < layers.count && gguf_array_u64(&layers, i, &layer); i++)
        list = arena_printf(material->arena, "%s%s%" PRIi64, list, i > 0 ? ", " : "", (int64_t)layer - 1);
    return arena_printf(material->arena, "[%s]", list);
}

static const char *make_dflash_config(const struct config_material *material)
{
    const char *layers = make_target_layers(material);
    return arena_printf(material->arena, "{\n    \"target_layer_ids\": %s\n  }", layers != NULL ? layers : "[]");
}

static const char *make_use_of_window(const struct config_material *material)
{
    return gguf_kvs_find(material->kvs, "dflash.attention.sliding_window") != NULL ? "true" : NULL;
}

static const char *make_markov_rank(const struct config_material *material)
{
    const struct tensor *tensor = tensor_set_find_text(material->tensors, "markov_w1.weight");
    return tensor != NULL && tensor->rank == 2 ? arena_printf(material->arena, "%" PRIu64, tensor->shape[1]) : NULL;
}

const struct config_row dflash_common_rows[] = {
    {"tie_word_embeddings", FROM_TEXT, .text = "false"},
    {"block_size", FROM_KEY, "block_size"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"sliding_window", FROM_KEY, "attention.sliding_window"},
    {"use_sliding_window", .make = make_use_of_window},
    {0},
};

static const struct config_row dflash_rows[] = {
    {"dflash_config", .make = make_dflash_config},
    {"dflash_config.mask_token_id", FROM_KEY, ".tokenizer.ggml.mask_token_id"},
    {"dflash_config.causal", FROM_KEY, "attention.causal"},
    {"dflash_config.attention_value_scale", FROM_KEY, "attention.value_scale"},
    {"dflash_config.conv_kernel_size", FROM_KEY, "conv_kernel_size"},
    {"dflash_config.conv_group_size", FROM_KEY, "conv_group_size"},
    {"dflash_config.selector_rank", FROM_KEY, "selector_rank"},
    {"dflash_config.selector_top_k", FROM_KEY, "selector_top_k"},
    {"dflash_config.output_multiplier", FROM_KEY, "logit_scale"},
    {"dflash_config.final_logit_softcapping", FROM_KEY, "final_logit_softcapping"},
    {"dflash_config.input_embedding_scale", FROM_KEY, "embedding_scale"},
    {0},
};

const struct config_row dspark_rows[] = {
    {"target_layer_ids", .make = make_target_layers},
    {"mask_token_id", FROM_KEY, ".tokenizer.ggml.mask_token_id"},
    {"is_causal", FROM_KEY, "attention.causal"},
    {"sample_from_anchor", FROM_KEY, "sample_from_anchor"},
    {"markov_head_type", FROM_TEXT, .text = "'vanilla'"},
    {"markov_rank", .make = make_markov_rank},
    {0},
};

/* The numbers that DFlash has in dflash_config. */
static const struct config_row dspark_number_rows[] = {
    {"output_multiplier", FROM_KEY, "logit_scale"},
    {"final_logit_softcapping", FROM_KEY, "final_logit_softcapping"},
    {"input_embedding_scale", FROM_KEY, "embedding_scale"},
    {0},
};

#define DRAFT_TABLES(...) CONFIG_TABLES(silu_rows, attention_bias_rows, draft_rows, dflash_common_rows, __VA_ARGS__)

const struct family dflash_family = {
    .name = "dflash",
    .told_by = "!key:hidden_activation !key:hyper_connection.count",
    .forms = CONFIG_FORMS(
        {"DSparkDraftModel", "qwen3", "key:sample_from_anchor !key:attention.value_scale",
         DRAFT_TABLES(dspark_rows, dspark_number_rows), DRAFT_NOTE},
        {"DSparkDraftModel", "qwen3", "key:sample_from_anchor", DRAFT_TABLES(dflash_rows, dspark_rows), DRAFT_NOTE},
        {"DFlash2DraftModel", "qwen3", "key:conv_kernel_size", DRAFT_TABLES(dflash_rows), DRAFT_NOTE},
        {"DFlashDraftModel", "qwen3", NULL, DRAFT_TABLES(dflash_rows), DRAFT_NOTE}),
    .summary = "DFlash 1 and 2, DSpark",
    .hf = FAMILY_NAMES({"DFlashDraftModel"}, {"DFlash2DraftModel", .since = 10662}, {"Qwen3DSparkModel"},
                       {"DSparkDraftModel"}, {"DSparkSpeculator"}, {"Lfm2DSparkDraftModel", .since = 10593},
                       {"LingDSparkModel", .since = 10531}),
    .tensors = {dflash_tensors, qk_norm_tensors, decoder_tensors},
    .keys = {base_keys, dflash_keys, KEYS({.emit = dspark_emit})},
    .drafts = true,
    .stored_types = STORED_TYPES({"d2t", &i64_dtype}),
    .rename = dflash_rename,
    .arrange = put_tokens_last,
    .adjust = dflash_adjust,
    .add_extras = dflash_check_target,
    .after_vocab = set_mask_token,
};

/* Muse Glimmer's own draft, of the same architecture. conversion/muse_glimmer.py. */
static bool emit_assistant_window(struct model_builder *builder, struct error *error)
{
    static const struct key_row window[] = {{"attention.sliding_window", GGUF_U32, IF_TRUE, "sliding_window"}, {0}};
    const struct hparams *hparams = builder->model->hparams;
    double size;
    if (!builder_number(builder, "sliding_window", 0, &size, error))
        return false;
    if (size == 0 || json_count(hparams_get(hparams, "layer_types")) == 0)
        return true;
    return builder_emit(builder, window, error) && emit_listed_windows(builder, error);
}

static bool emit_assistant_targets(struct model_builder *builder, struct error *error)
{
    return draft_list_target_layers(builder, hparams_get(builder->model->hparams, "target_layer_ids"), 1, error);
}

/* transformers' names */
static const struct relation_row assistant_tensors[] = {
    {"encoder.fc", "fc", .forward_only = true},
    {"encoder.output_norm_enc", "enc.output_norm", .forward_only = true},
    {0},
};

const struct family muse_glimmer_assistant_family = {
    .name = "dflash-muse-glimmer", /* whose GGUF is that of a DFlash */
    .architecture = "dflash",
    .summary = "Muse Glimmer's draft",
    .hf = FAMILY_NAMES({"MuseGlimmerAssistantModel"}),
    .tensors = {assistant_tensors, dflash_tensors, qk_norm_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({"block_size", GGUF_U32, REQUIRED, "block_size"}, {.emit = emit_assistant_targets},
                             {.emit = emit_assistant_window})},
    .drafts = true,
    .add_extras = dflash_check_target,
    .after_vocab = set_mask_token,
};
