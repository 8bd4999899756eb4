#include "models/families/layers.h"

#include <inttypes.h>
#include <string.h>

bool layers_new(const struct draft *draft, struct layers *ret_layers, struct error *error)
{
    uint64_t n = draft->facts.n_layers;
    if (n == 0 || n > MAX_LISTED_LAYERS)
        return error_set(error, "config.json: %" PRIu64 " layers, outside 1 to %d", n, MAX_LISTED_LAYERS);
    *ret_layers = (struct layers){n, arena_array(draft->model->arena, n, sizeof(double))};
    memset(ret_layers->values, 0, n * sizeof(double));
    return true;
}

/* What later releases of transformers call a kind of layer. */
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

void layers_note_later_names(const struct draft *draft, const struct json *list)
{
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item))
        if (json_string_is(item, "full_attention") || json_string_is(item, "linear_attention")) {
            checkpoint_note(draft->model->checkpoint,
                            "model.gguf: kinds of layers have the names of later releases of transformers, which the "
                            "converter does not know: it would take no layer for attention");
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

void layers_set(struct draft *draft, const char *key, enum gguf_type type, const struct layers *layers)
{
    struct buffer elements = {0};
    for (uint64_t i = 0; i < layers->n; i++) {
        float value = (float)layers->values[i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (type == GGUF_F32)
            buffer_append_le(&elements, bits, 4);
        else if (type == GGUF_BOOL)
            buffer_append_le(&elements, layers->values[i] != 0, 1);
        else
            buffer_append_le(&elements, (uint32_t)(int32_t)layers->values[i], 4);
    }
    gguf_set_array(&draft->model->kvs, draft_key(draft, key), type, layers->n, &elements);
}

bool layers_emit_listed(struct draft *draft, const char *key, const char *from, struct error *error)
{
    const struct json *list = hparams_get(draft->model->hparams, from);
    struct layers layers;
    if (!json_is(list, JSON_ARRAY))
        return true;
    if (!layers_new(draft, &layers, error))
        return false;
    layers_fill(&layers, list);
    layers_set(draft, key, GGUF_F32, &layers);
    return true;
}

bool layers_set_kv_heads(struct draft *draft, const struct layers *layers, struct error *error)
{
    uint64_t kv_heads;
    if (!hparams_count(draft->model->hparams, "num_key_value_heads|n_kv_heads", 0, INT32_MAX, &kv_heads, error))
        return false;
    for (uint64_t i = 0; i < layers->n; i++)
        layers->values[i] = layers->values[i] != 0 ? (double)kv_heads : 0;
    layers_set(draft, "attention.head_count_kv", GGUF_I32, layers);
    return true;
}

bool emit_sliding_layers(struct draft *draft, struct error *error)
{
    struct layers layers;
    if (!layers_new(draft, &layers, error))
        return false;
    layers_mark(&layers, hparams_get(draft->model->hparams, "layer_types"), "sliding_attention");
    layers_set(draft, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}
