#include "models/families/drafts.h"

#include "base/little_endian.h"
#include "quant/convert.h"

#include <inttypes.h>
#include <stdlib.h>

bool draft_open_target(const struct model_builder *builder, struct document **ret_config, struct error *error)
{
    const struct checkpoint *target = checkpoint_base(builder->model->checkpoint, BASE_TARGET);
    if (target == NULL)
        return error_set(error, "a draft model needs the tokenizer of the model it drafts for; use -o base=DIR");
    if (!document_open(target, "config.json", ret_config, error))
        return error_prefix(error, "the base");
    return *ret_config != NULL || error_set(error, "the base %s has no config.json", target->path);
}

const struct json *draft_target_value(const struct document *config, const char *key)
{
    const struct json *root = document_root(config), *value = json_get(json_get(root, "text_config"), key);
    return value != NULL ? value : json_get(root, key);
}

void draft_set_target_layers(struct model_builder *builder, const int64_t *layers, size_t n_layers)
{
    struct buffer elements = {0};
    for (size_t i = 0; i < n_layers; i++)
        buffer_append_le(&elements, (uint32_t)layers[i], 4);
    gguf_set_array(&builder->model->kvs, builder_key(builder, "target_layers"), GGUF_I32, n_layers, &elements);
}

bool draft_list_target_layers(struct model_builder *builder, const struct json *list, int64_t added,
                              struct error *error)
{
    size_t n_layers = 0;
    if (!json_is(list, JSON_ARRAY) || json_count(list) == 0)
        return true;
    int64_t *layers = arena_array(builder->model->arena, json_count(list), sizeof *layers);
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item)) {
        int64_t *layer = &layers[n_layers++];
        if (!json_i64(item, layer) || *layer < INT32_MIN || *layer > INT32_MAX - added)
            return error_set(error, "config.json: a layer of the base is not a whole number of 32 bits");
        *layer += added;
    }
    draft_set_target_layers(builder, layers, n_layers);
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool check_ids(const int64_t *ids, uint64_t n_ids, uint64_t n_vocab, struct arena *arena, struct error *error)
{
    int64_t *sorted = arena_copy(arena, ids, n_ids * sizeof *ids);
    qsort(sorted, n_ids, sizeof *sorted, compare_ids);
    if (n_ids > 0 && (sorted[0] < 0 || (uint64_t)sorted[n_ids - 1] >= n_vocab))
        return error_set(error, "tensor 'd2t' leads to tokens %" PRId64 " to %" PRId64 ", where the base has %" PRIu64,
                         sorted[0], sorted[n_ids - 1], n_vocab);
    for (uint64_t i = 1; i < n_ids; i++)
        if (sorted[i] == sorted[i - 1])
            return error_set(error, "tensor 'd2t' leads to token %" PRId64 " twice", sorted[i]);
    return true;
}

bool draft_add_tokens(struct model_builder *builder, uint64_t n_vocab, struct error *error)
{
    static const char name[] = "d2t";
    struct arena *arena = builder->model->arena;
    const struct tensor *tensor = tensor_set_find_text(builder->model->checkpoint->tensors, name);
    if (tensor == NULL)
        return true;
    if (tensor->refusal != NULL || dtype_kernels(tensor->dtype).decode == NULL)
        return error_set(error, "tensor '%s': %s", name, tensor->refusal ? tensor->refusal : "it has no numbers");
    const struct view *view = tensor_view(tensor, arena);
    uint64_t n_ids = view->n_elements;
    float *steps = arena_array(arena, n_ids + 1, sizeof *steps);
    int64_t *ids = arena_array(arena, n_ids + 1, sizeof *ids);
    if (!convert_values(view, 0, n_ids, steps, error))
        return false;
    for (uint64_t i = 0; i < n_ids; i++) {
        if (!(steps[i] > (float)INT32_MIN && steps[i] < (float)INT32_MAX))
            return error_set(error, "tensor '%s' has a value that is not a 32-bit integer", name);
        ids[i] = (int64_t)steps[i] + (int64_t)i;
    }
    if (!check_ids(ids, n_ids, n_vocab, arena, error))
        return false;
    little_endian(ids, n_ids, sizeof *ids);
    tensor_set_add_view(builder->model->tensors, name, view_literal(arena, &i64_dtype, 1, &n_ids, ids));
    return true;
}
