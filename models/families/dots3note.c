/* dots3-note, the text model: latent attention in two sizes, with an indexer in layers that see all tokens.
 * conversion/dots3.py, Dots3NoteModel. */
#include "models/families/deepseek/deepseek.h"
#include "models/families/drafts/nextn.h"
#include "models/families/layers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ATTENTION "model.layers.{}.self_attn."

static const struct view *rescale(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                  const struct view *view, const char *factor)
{
    return elementwise_multiply(arena, dimensions, direction, view, &factor, 1);
}

static const struct view *rescale_queries(struct arena *arena, const struct dimensions *dimensions,
                                          enum direction direction, const struct view *view)
{
    return rescale(arena, dimensions, direction, view, "query_scale");
}

static const struct view *rescale_keys(struct arena *arena, const struct dimensions *dimensions,
                                       enum direction direction, const struct view *view)
{
    return rescale(arena, dimensions, direction, view, "key_scale");
}

static const struct view *rescale_sliding_keys(struct arena *arena, const struct dimensions *dimensions,
                                               enum direction direction, const struct view *view)
{
    return rescale(arena, dimensions, direction, view, "sliding_key_scale");
}

#define RESCALED(name, function)                                                                                       \
    static const struct elementwise name = {.forward_text = "x * scale",                                               \
                                            .backward_text = "x / scale",                                              \
                                            .apply = function,                                                         \
                                            .exactness = "a rounding of each element in both directions"}
RESCALED(query_scale, rescale_queries);
RESCALED(key_scale, rescale_keys);
RESCALED(sliding_key_scale, rescale_sliding_keys);

#define INDEXER "blk.{}.indexer.proj" /* in layers without a window */

/* `rename_tensor` puts "sliding_" before the names of layers with a sliding window. In these layers "group" is a head,
 * "key_dim" and "value_dim" are its sizes. */
static const struct relation_row tensors[] = {
    {"lm_head.weight", NULL, .when = "tie_word_embeddings"},
    {ATTENTION "q_a_layernorm", "blk.{}.attn_q_a_norm", .map = &query_scale},
    {ATTENTION "kv_a_layernorm", "blk.{}.attn_kv_a_norm", .map = &key_scale, .when = "has:" INDEXER},
    {ATTENTION "sliding_kv_a_layernorm", "blk.{}.attn_kv_a_norm", .map = &sliding_key_scale, .when = "!has:" INDEXER},
    {ATTENTION "sliding_q_b_proj", "blk.{}.attn_q_b", "(group d) ...", "group", .when = "!has:" INDEXER},
    {ATTENTION "sliding_kv_b_proj", "blk.{}.attn_k_b, blk.{}.attn_v_b",
     "(group (key_dim + value_dim)) c -> group c key_dim, group value_dim c", "group", .when = "!has:" INDEXER},
    {ATTENTION "k_rope_only_layernorm", "blk.{}.attn_k_norm"},
    {ATTENTION "g_proj", "blk.{}.attn_gate", .parallel = "row"},
    {ATTENTION "indexer.wq_b", "blk.{}.indexer.attn_q_b"},
    {ATTENTION "indexer.wk", "blk.{}.indexer.attn_k"},
    {ATTENTION "indexer.k_norm", "blk.{}.indexer.k_norm"},
    {ATTENTION "indexer.weights_proj", "blk.{}.indexer.proj"},
    {0},
};

/* Returns the checkpoint's name for a row's; layer `first` predicts. */
static const char *original_name(struct arena *arena, const char *name, uint64_t first)
{
    static const char sliding[] = "sliding_";
    const char *table = arena_printf(arena, "model.layers.%" PRIu64 ".embed_tokens.", first),
               *at = strstr(name, sliding);
    if (strncmp(name, table, strlen(table)) == 0)
        return arena_printf(arena, "model.mtp.embed_tokens.%s", name + strlen(table));
    return at != NULL ? arena_printf(arena, "%.*s%s", (int)(at - name), name, at + strlen(sliding)) : name;
}

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char shared[] = "model.mtp.embed_tokens.";
    static const char *const sized[] = {"kv_a_layernorm.weight", "q_b_proj.weight", "kv_b_proj.weight"};
    uint64_t numbers[PATTERN_NUMBERS], first = dimensions->n_layers - dimensions_get(dimensions, "nextn");
    if (direction == BACKWARD)
        return original_name(arena, name, first);
    if (strncmp(name, shared, strlen(shared)) == 0)
        return arena_printf(arena, "model.layers.%" PRIu64 ".embed_tokens.%s", first, name + strlen(shared));
    for (size_t i = 0; i < sizeof sized / sizeof *sized; i++)
        if (pattern_match(arena_printf(arena, ATTENTION "%s", sized[i]), name, strlen(name), numbers) &&
            (numbers[0] >= first || layers_recall(dimensions, numbers[0])))
            return arena_printf(arena, "model.layers.%" PRIu64 ".self_attn.sliding_%s", numbers[0], sized[i]);
    return name;
}

/* Sets a factor to the root of the model's width over a rank, if config.json asks for that. */
static void set_scale(struct dimensions *dimensions, const struct hparams *hparams, const char *name, const char *rank)
{
    double width, narrow;
    if (json_bool(hparams_get(hparams, "apply_mla_qkv_lora_rescale"), false) &&
        json_double(hparams_get(hparams, "hidden_size"), &width) && json_double(hparams_get(hparams, rank), &narrow) &&
        narrow > 0)
        dimensions_set_factor(dimensions, name, (float)sqrt(width / narrow));
}

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    const struct json *types = hparams_get(hparams, "layer_types"),
                      *type = json_is(types, JSON_ARRAY) ? json_first(types) : NULL;
    for (uint64_t i = 0; type != NULL; i++, type = json_next(type))
        if (json_string_is(type, "sliding_attention"))
            layers_remember(dimensions, i);
    nextn_add_dimensions(dimensions, hparams);
    dimensions_set(dimensions, "kv_head", dimensions_get(dimensions, "head"));
    set_scale(dimensions, hparams, "query_scale", "q_lora_rank");
    set_scale(dimensions, hparams, "key_scale", "kv_lora_rank");
    set_scale(dimensions, hparams, "sliding_key_scale", "swa_kv_lora_rank");
}

/* Returns what per_layer_config says of the first layer with a window; NULL: nothing. */
static const struct json *config_of_sliding(const struct hparams *hparams)
{
    const struct json *types = hparams_get(hparams, "layer_types"), *layers = hparams_get(hparams, "per_layer_config"),
                      *type = json_is(types, JSON_ARRAY) ? json_first(types) : NULL;
    char number[24];
    size_t i = 0;
    while (type != NULL && !json_string_is(type, "sliding_attention"))
        type = json_next(type), i++;
    snprintf(number, sizeof number, "%zu", i);
    return type != NULL ? json_get(layers, number) : NULL;
}

/* Gives a config.json of transformers 5 the keys that it was made from: the sizes of sliding layers are in
 * per_layer_config where they differ from the model's, and the class has only one kind of router. */
static bool undo_saving(struct model_builder *builder, struct error *error)
{
    static const char *const sizes[] = {"num_attention_heads", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim",
                                        "qk_rope_head_dim",    "v_head_dim",  "head_dim"};
    struct gguf_model *model = builder->model;
    const struct hparams *hparams = model->hparams;
    const struct json *layer = config_of_sliding(hparams), *types = hparams_get(hparams, "mlp_layer_types");
    uint64_t size, n_dense = 0;
    if (!json_is(hparams_get(hparams, "per_layer_config"), JSON_OBJECT))
        return true;
    for (const struct json *type = json_first(types); json_string_is(type, "dense"); type = json_next(type))
        n_dense++;
    const char *text = arena_printf(model->arena,
                                    "{'scoring_func': 'sigmoid', 'apply_mla_qkv_lora_rescale': true, "
                                    "'first_k_dense_replace': %" PRIu64,
                                    n_dense);
    if (json_u64(hparams_get(hparams, "sliding_window"), &size))
        text = arena_printf(model->arena, "%s, 'sliding_window_size': %" PRIu64, text, size);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (json_u64(json_get(layer, sizes[i]), &size) || json_u64(hparams_get(hparams, sizes[i]), &size))
            text = arena_printf(model->arena, "%s, 'swa_%s': %" PRIu64, text, sizes[i], size);
    checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                    "config.json is as transformers 5 saves it, with per_layer_config; the converter fails on that");
    if (!hparams_default(model->hparams, arena_printf(model->arena, "%s}", text), error))
        return false;
    builder->dimensions.n_factors = 0;
    family_add_dimensions(builder->family, &builder->dimensions, hparams);
    return true;
}

struct demand {
    const char *key, *text; /* the only text that the converter takes; absent is fine */
};

static bool check_texts(const struct hparams *hparams, struct error *error)
{
    static const struct demand demands[] = {{"normalization", "RMSNorm"},
                                            {"final_norm", "RMSNorm"},
                                            {"topk_method", "noaux_tc"},
                                            {"attention_gate_type", "headwise"},
                                            {"swa_attention_gate_type", "headwise"}};
    for (size_t i = 0; i < sizeof demands / sizeof *demands; i++) {
        const struct json *value = hparams_get(hparams, demands[i].key);
        if (value != NULL && !json_string_is(value, demands[i].text))
            return error_set(error, "config.json: %s is not '%s', the only value that is supported", demands[i].key,
                             demands[i].text);
    }
    return json_string_is(hparams_get(hparams, "scoring_func"), "sigmoid") ||
           error_set(error, "config.json: scoring_func is not 'sigmoid', the only value that is supported");
}

static bool check_flags(const struct hparams *hparams, struct error *error)
{
    static const char *const on[] = {"use_dsa", "k_rope_only_layernorm"}, *const off[] = {"use_dynamic_rsf",
                                                                                          "moe_gating_fp32"};
    for (size_t i = 0; i < 2; i++)
        if (!json_bool(hparams_get(hparams, on[i]), true) || json_bool(hparams_get(hparams, off[i]), false))
            return error_set(error, "config.json: %s is false, or %s true, which is not supported", on[i], off[i]);
    return true;
}

/* Checks that two sums of hyperparameters are equal; absent ones are the number given. */
static bool check_numbers(const struct model_builder *builder, struct error *error)
{
    static const struct {
        const char *key, *other;
        double otherwise;
    } equal[] = {{"swa_qk_rope_head_dim", "qk_rope_head_dim", NAN}, {"swa_q_lora_rank", "q_lora_rank", NAN}};
    double nope, rope, size, n_groups, n_used;
    for (size_t i = 0; i < sizeof equal / sizeof *equal; i++) {
        double a, b;
        if (!builder_number(builder, equal[i].key, NAN, &a, error) ||
            !builder_number(builder, equal[i].other, NAN, &b, error))
            return false;
        if (a != b) /* or either is missing */
            return error_set(error, "config.json: %s is %g, but %s is %g; both kinds of layers must have the same",
                             equal[i].key, a, equal[i].other, b);
    }
    if (!builder_number(builder, "swa_qk_nope_head_dim", NAN, &nope, error) ||
        !builder_number(builder, "swa_qk_rope_head_dim", NAN, &rope, error) ||
        !builder_number(builder, "swa_head_dim", 256, &size, error) ||
        !builder_number(builder, "n_group", 1, &n_groups, error) ||
        !builder_number(builder, "topk_group", 1, &n_used, error))
        return false;
    if (nope + rope != size)
        return error_set(error,
                         "config.json: swa_head_dim is %g, but swa_qk_nope_head_dim and swa_qk_rope_head_dim "
                         "are %g together",
                         size, nope + rope);
    return (n_groups == 1 && n_used == 1) ||
           error_set(error, "config.json: n_group or topk_group is not 1: groups of experts are not supported");
}

/* Counts the layer that predicts: it is there if its table of tokens is. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    if (!undo_saving(builder, error))
        return false;
    const struct json *types = hparams_get(model->hparams, "layer_types");
    if (!check_texts(model->hparams, error) || !check_flags(model->hparams, error) || !check_numbers(builder, error))
        return false;
    nextn_set(&builder->dimensions, 0);
    if (!json_is(types, JSON_ARRAY) || json_count(types) < builder->dimensions.n_layers)
        return error_set(error, "config.json: layer_types has %zu layers, but num_hidden_layers is %" PRIu64,
                         json_count(types), builder->dimensions.n_layers);
    if (builder->dimensions.n_layers > MAX_REMEMBERED_LAYERS)
        return error_set(error, "config.json: %" PRIu64 " layers; the limit is %d", builder->dimensions.n_layers,
                         MAX_REMEMBERED_LAYERS);
    bool predicts = tensor_set_find_text(model->checkpoint->tensors, "model.mtp.embed_tokens.weight") != NULL;
    nextn_set(&builder->dimensions, predicts);
    return nextn_count_blocks(builder, error);
}

/* Removes what the common rows wrote from head_dim, and sets the heads of each layer. */
static bool emit_heads(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    struct layers layers;
    uint64_t full, sliding, first = builder->dimensions.n_layers - dimensions_get(&builder->dimensions, "nextn");
    gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "attention.key_length"));
    gguf_kvs_remove(&builder->model->kvs, builder_key(builder, "attention.value_length"));
    if (!hparams_count(hparams, "num_attention_heads", 1, INT32_MAX, &full, error) ||
        !hparams_count(hparams, "swa_num_attention_heads", 1, INT32_MAX, &sliding, error) ||
        !layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = (double)(i >= first || layers_recall(&builder->dimensions, i) ? sliding : full);
    return layers_set_i32(builder, "attention.head_count", &layers, error);
}

/* Sets which layers have a window, or an indexer; the layer that predicts does not count. */
static bool emit_kinds(struct model_builder *builder, const char *key, bool sliding, struct error *error)
{
    struct layers layers;
    if (!layers_new(builder, &layers, error))
        return false;
    layers.n -= dimensions_get(&builder->dimensions, "nextn");
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = layers_recall(&builder->dimensions, i) == sliding;
    layers_set(builder, key, GGUF_BOOL, &layers);
    return true;
}

static bool emit_windows(struct model_builder *builder, struct error *error)
{
    return emit_kinds(builder, "attention.sliding_window_pattern", true, error);
}

static bool emit_indexers(struct model_builder *builder, struct error *error)
{
    return emit_kinds(builder, "attention.indexer.types", false, error);
}

static const struct key_row keys[] = {
    {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window_size"},
    {.emit = emit_windows},
    {"attention.kv_lora_rank_swa", GGUF_U32, REQUIRED, "swa_kv_lora_rank"},
    {"attention.key_length_swa", GGUF_U32, REQUIRED, "swa_kv_lora_rank", .plus = "swa_qk_rope_head_dim"},
    {"attention.value_length_swa", GGUF_U32, REQUIRED, "swa_kv_lora_rank"},
    {"attention.key_length_mla_swa", GGUF_U32, REQUIRED, "swa_qk_nope_head_dim", .plus = "swa_qk_rope_head_dim"},
    {"attention.value_length_mla_swa", GGUF_U32, REQUIRED, "swa_v_head_dim"},
    {.emit = nextn_emit},
    {"attention.indexer.head_count", GGUF_U32, REQUIRED, "index_n_heads"},
    {"attention.indexer.key_length", GGUF_U32, REQUIRED, "index_head_dim"},
    {"attention.indexer.top_k", GGUF_U32, REQUIRED, "index_topk"},
    {.emit = emit_indexers},
    {0},
};

/* Without such a key, the sizes of sliding layers are 0: not to be guessed from shapes. */
static const struct dimension_row sliding_dimensions[] = {
    {"group", "swa_num_attention_heads"}, {"key_dim", "swa_qk_nope_head_dim"}, {"value_dim", "swa_v_head_dim"}, {0}};

/* A GGUF does not say whether the converter multiplied the norms' weights (set_scale()). The way back divides them, and
 * asks for the rescaling in config.json: a model that had none computes the same values then. */
static const struct config_row config_rows[] = {
    {"num_attention_heads", FROM_UNMARKED, "attention.head_count", "attention.sliding_window_pattern"},
    {"num_key_value_heads", FROM_UNMARKED, "attention.head_count", "attention.sliding_window_pattern"},
    {"swa_num_attention_heads", FROM_MARKED, "attention.head_count", "attention.sliding_window_pattern"},
    {"swa_num_key_value_heads", FROM_MARKED, "attention.head_count", "attention.sliding_window_pattern"},
    {"head_dim", FROM_KEY, "attention.key_length_mla"},
    {"layer_types", FROM_LAYERS, "attention.sliding_window_pattern", "'sliding_attention'|'full_attention'"},
    {"swa_q_lora_rank", FROM_KEY, "attention.q_lora_rank"},
    {"swa_qk_rope_head_dim", FROM_KEY, "rope.dimension_count"},
    {"swa_qk_nope_head_dim", FROM_DIFFERENCE, "attention.key_length_mla_swa", "rope.dimension_count"},
    {"swa_v_head_dim", FROM_KEY, "attention.value_length_mla_swa"},
    {"swa_head_dim", FROM_KEY, "attention.key_length_mla_swa"},
    {"apply_mla_qkv_lora_rescale", FROM_TEXT, .text = "true"},
    {"num_nextn_predict_layers", FROM_KEY, "nextn_predict_layers"},
    {"swa_rope_theta", FROM_KEY, "rope.freq_base_swa"},
    {"use_dsa", FROM_TEXT, .text = "true"},
    {"k_rope_only_layernorm", FROM_TEXT, .text = "true"},
    {"attention_gate_type", FROM_TEXT, .text = "'headwise'"},
    {"swa_attention_gate_type", FROM_TEXT, .text = "'headwise'"},
    {"scoring_func", FROM_TEXT, .text = "'sigmoid'"},
    {"topk_method", FROM_TEXT, .text = "'noaux_tc'"},
    {"n_group", FROM_KEY, "expert_group_count", .text = "1"},
    {"topk_group", FROM_KEY, "expert_group_used_count", .text = "1"},
    {"n_routed_experts", FROM_KEY, "expert_count"},
    {"moe_intermediate_size", FROM_KEY, "expert_feed_forward_length"},
    {0},
};

const struct family dots3note_family = {
    .name = "dots3note",
    .summary = "dots3-note (language model)",
    .since = 10593,
    .hf = FAMILY_NAMES({"Dots3NoteForCausalLM"}, {"Dots3NoteForConditionalGeneration"}, {"Dots3NoteTextForCausalLM"}),
    .tensors = {tensors, mla_tensors, nextn_tensors, router_tensors, expert_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Dots3NoteForCausalLM", "dots3_note_text", NULL,
                           CONFIG_TABLES(silu_rows, deepseek_config_rows, config_rows), HALF_NOTE}),
    .keys = {mla_first_keys, base_keys, KEYS({.emit = emit_heads}), mla_keys, keys},
    .exports_mtp = true,
    .vocabs = {&dots3_vocab},
    .dimensions = {mla_dimensions, sliding_dimensions},
    .defaults = MLA_DEFAULTS,
    .add_dimensions = add_dimensions,
    .adjust = adjust,
    .rename = rename_tensor,
};
