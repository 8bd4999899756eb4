#include "models/families/layers.h"

#include "text/json_write.h"

#include <inttypes.h>
#include <string.h>

bool layers_new(const struct model_builder *builder, struct layers *ret_layers, struct error *error)
{
    uint64_t n = builder->dimensions.n_layers;
    if (n == 0 || n > MAX_LISTED_LAYERS)
        return error_set(error, "config.json: %" PRIu64 " layers; the limits are 1 and %d", n, MAX_LISTED_LAYERS);
    *ret_layers = (struct layers){n, arena_array(builder->model->arena, n, sizeof(double))};
    memset(ret_layers->values, 0, n * sizeof(double));
    return true;
}

bool layers_of_list(const struct model_builder *builder, const struct json *list, struct layers *ret_layers,
                    struct error *error)
{
    size_t n = json_count(list);
    if (n > MAX_LISTED_LAYERS)
        return error_set(error, "config.json: a list has %zu layers; the limit is %d", n, MAX_LISTED_LAYERS);
    *ret_layers = (struct layers){n, arena_array(builder->model->arena, n + 1, sizeof(double))};
    memset(ret_layers->values, 0, n * sizeof(double));
    return true;
}

bool layers_set_all(struct model_builder *builder, const char *key, enum gguf_type type, double value,
                    struct error *error)
{
    struct layers layers = {0};
    if (!layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = value;
    if (type == GGUF_I32)
        return layers_set_i32(builder, key, &layers, error);
    layers_set(builder, key, type, &layers);
    return true;
}

bool layers_set_clamps(struct model_builder *builder, const struct json *value, struct error *error)
{
    double limit;
    enum gguf_type type = json_is_integer(value) ? GGUF_I32 : GGUF_F32;
    if (!json_double(value, &limit))
        return error_set(error, "config.json: swiglu_limit is missing, or not a number");
    return layers_set_all(builder, "swiglu_clamp_exp", type, limit, error) &&
           layers_set_all(builder, "swiglu_clamp_shexp", type, limit, error);
}

const char *layers_clamp(const struct config_material *material)
{
    char digits[JSON_FLOAT_TEXT];
    struct gguf_array array;
    struct error unused;
    uint64_t whole;
    double limit;
    const char *key = arena_printf(material->arena, "%s.swiglu_clamp_exp", material->architecture);
    if (!gguf_get_array(material->kvs, key, material->arena, &array, &unused) || array.count == 0)
        return NULL;
    if (gguf_array_u64(&array, 0, &whole))
        return arena_printf(material->arena, "%" PRIu64, whole);
    return gguf_array_f64(&array, 0, &limit) ? arena_strdup(material->arena, json_f32_text((float)limit, digits))
                                             : NULL;
}

/* Returns the name of a layer type in later releases of transformers. */
static const char *later_name(const char *text)
{
    static const char *const names[][2] = {{"attention", "full_attention"}, {"mamba", "linear_attention"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], text) == 0)
            return names[i][1];
    return text;
}

void layers_mark(struct layers *layers, const struct json *list, const char *text)
{
    const char *later = later_name(text);
    const struct json *item = json_is(list, JSON_ARRAY) ? json_first(list) : NULL;
    for (uint64_t i = 0; i < layers->n && item != NULL; i++, item = json_next(item))
        layers->values[i] = json_string_is(item, text) || json_string_is(item, later);
}

void layers_note_later_names(const struct model_builder *builder, const struct json *list)
{
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item))
        if (json_string_is(item, "full_attention") || json_string_is(item, "linear_attention")) {
            checkpoint_note(
                builder->model->checkpoint, SUBJECT_GGUF,
                "layer types have the names of later transformers releases; the converter does not know them "
                "and would treat no layer as attention");
            return;
        }
}

void layers_fill(struct layers *layers, const struct json *list)
{
    const struct json *item = json_is(list, JSON_ARRAY) ? json_first(list) : NULL;
    for (uint64_t i = 0; i < layers->n && item != NULL; i++, item = json_next(item))
        if (!json_double(item, &layers->values[i]))
            layers->values[i] = json_is(item, JSON_TRUE);
}

void layers_set(struct model_builder *builder, const char *key, enum gguf_type type, const struct layers *layers)
{
    struct buffer elements = {0};
    for (uint64_t i = 0; i < layers->n; i++) {
        float value = (float)layers->values[i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (type == GGUF_F32)
            buffer_append_le(&elements, bits, 4);
        else
            buffer_append_le(&elements, layers->values[i] != 0, 1);
    }
    gguf_set_array(&builder->model->kvs, builder_key(builder, key), type, layers->n, &elements);
}

bool layers_set_i32(struct model_builder *builder, const char *key, const struct layers *layers, struct error *error)
{
    struct buffer elements = {0};
    for (uint64_t i = 0; i < layers->n; i++) {
        if (!(layers->values[i] >= INT32_MIN && layers->values[i] <= INT32_MAX)) {
            buffer_free(&elements);
            return error_set(error, "config.json: layer %" PRIu64 ": %s would be %g, which is not a 32-bit number", i,
                             key, layers->values[i]);
        }
        buffer_append_le(&elements, (uint32_t)(int32_t)layers->values[i], 4);
    }
    gguf_set_array(&builder->model->kvs, builder_key(builder, key), GGUF_I32, layers->n, &elements);
    return true;
}

bool layers_emit_listed(struct model_builder *builder, const char *key, const char *from, struct error *error)
{
    const struct json *list = hparams_get(builder->model->hparams, from);
    struct layers layers = {0};
    if (!json_is(list, JSON_ARRAY))
        return true;
    if (!layers_new(builder, &layers, error))
        return false;
    layers_fill(&layers, list);
    layers_set(builder, key, GGUF_F32, &layers);
    return true;
}

/* Bit i of word i / 64. */
static const char *const words[] = {"layers 0", "layers 1", "layers 2", "layers 3"};

void layers_remember(struct dimensions *dimensions, uint64_t layer)
{
    if (layer < MAX_REMEMBERED_LAYERS)
        dimensions_set(dimensions, words[layer / 64],
                       dimensions_get(dimensions, words[layer / 64]) | UINT64_C(1) << layer % 64);
}

bool layers_recall(const struct dimensions *dimensions, uint64_t layer)
{
    return layer < MAX_REMEMBERED_LAYERS && (dimensions_get(dimensions, words[layer / 64]) >> layer % 64 & 1) != 0;
}

bool layers_set_kv_heads(struct model_builder *builder, const struct layers *layers, struct error *error)
{
    uint64_t kv_heads;
    if (!hparams_count(builder->model->hparams, "num_key_value_heads|n_kv_heads", 0, INT32_MAX, &kv_heads, error))
        return false;
    for (uint64_t i = 0; i < layers->n; i++)
        layers->values[i] = layers->values[i] != 0 ? (double)kv_heads : 0;
    return layers_set_i32(builder, "attention.head_count_kv", layers, error);
}

bool emit_listed_windows(struct model_builder *builder, struct error *error)
{
    struct layers layers = {0};
    const struct json *types = hparams_get(builder->model->hparams, "layer_types");
    if (!json_is(types, JSON_ARRAY))
        return error_set(error, "config.json: layer_types is missing, or not a list");
    if (!layers_of_list(builder, types, &layers, error))
        return false;
    layers_mark(&layers, types, "sliding_attention");
    layers_set(builder, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}

bool layers_count_dense(struct model_builder *builder, struct error *error)
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
