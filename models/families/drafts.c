#include "models/families/drafts.h"

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
