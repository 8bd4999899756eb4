#include "models/families/granite/granite.h"

#include "models/families/layers.h"

#include <inttypes.h>
#include <stdlib.h>

struct pair {
    int64_t vision, text;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->vision != y->vision)
        return x->vision < y->vision ? -1 : 1;
    return (x->text > y->text) - (x->text < y->text);
}

/* Finds the layer with that number, which counts from the end if negative. */
static bool find_layer(const struct json *config, const char *part, int64_t number, uint64_t *ret_layer,
                       struct error *error)
{
    uint64_t n_layers;
    if (!json_u64(json_get(json_get(config, part), "num_hidden_layers"), &n_layers) || n_layers > MAX_LISTED_LAYERS)
        return error_set(error, "config.json: num_hidden_layers of %s is missing, or not a number of layers", part);
    int64_t layer = number < 0 ? number + (int64_t)n_layers : number;
    if (layer < 0 || layer >= (int64_t)n_layers)
        return error_set(error, "config.json: a projector is for layer %" PRId64 " of %s, which has %" PRIu64, number,
                         part, n_layers);
    *ret_layer = (uint64_t)layer;
    return true;
}

/* Inserts a projector in the order of text layers, after others for the same layer. */
static bool add_projector(const struct json *config, struct granite_projectors *projectors, const struct pair *pair,
                          enum granite_vision_kind kind, unsigned number, struct error *error)
{
    struct granite_projector added = {.kind = kind, .number = number};
    if (!find_layer(config, "vision_config", pair->vision, &added.vision_layer, error) ||
        !find_layer(config, "text_config", pair->text, &added.text_layer, error))
        return false;
    unsigned at = projectors->n++;
    for (; at > 0 && projectors->list[at - 1].text_layer > added.text_layer; at--)
        projectors->list[at] = projectors->list[at - 1];
    projectors->list[at] = added;
    return true;
}

static bool read_pairs(const struct json *list, const char *name, const int64_t *vision, struct pair *pairs,
                       struct error *error)
{
    unsigned n = 0;
    if (json_count(list) > GRANITE_VISION_MOST)
        return error_set(error, "config.json: %s has %zu projectors, more than %d", name, json_count(list),
                         GRANITE_VISION_MOST);
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item), n++) {
        const struct json *first = json_first(item), *text = vision != NULL ? item : json_next(first);
        bool is_pair = vision != NULL || json_count(item) == 2;
        if (vision != NULL)
            pairs[n].vision = *vision;
        else if (!is_pair || !json_i64(first, &pairs[n].vision))
            return error_set(error, "config.json: %s has an element that is not a pair of layers", name);
        if (!json_i64(text, &pairs[n].text))
            return error_set(error, "config.json: %s has an element that is not a layer", name);
    }
    return true;
}

static bool add_all(const struct json *config, struct granite_projectors *projectors, enum granite_vision_kind kind,
                    struct error *error)
{
    static const char *const names[] = {"deepstack_layer_map", "spatial_target_layers"};
    struct pair pairs[GRANITE_VISION_MOST];
    int64_t vision = -1;
    const struct json *list = json_get(config, names[kind]), *named = json_get(config, "spatial_vision_layer");
    if (json_count(list) == 0)
        return true;
    if (kind == GRANITE_SPATIAL && named != NULL && !json_i64(named, &vision))
        return error_set(error, "config.json: spatial_vision_layer is not a layer");
    if (!read_pairs(list, names[kind], kind == GRANITE_SPATIAL ? &vision : NULL, pairs, error))
        return false;
    if (kind == GRANITE_LAYERWISE)
        qsort(pairs, json_count(list), sizeof *pairs, compare_pairs);
    for (unsigned i = 0; i < json_count(list); i++)
        if (!add_projector(config, projectors, &pairs[i], kind, i, error))
            return false;
    return true;
}

bool granite_projectors_read(const struct json *config, struct granite_projectors *ret_projectors, struct error *error)
{
    *ret_projectors = (struct granite_projectors){0};
    return add_all(config, ret_projectors, GRANITE_LAYERWISE, error) &&
           add_all(config, ret_projectors, GRANITE_SPATIAL, error);
}

bool emit_deepstack_mapping(struct model_builder *builder, struct error *error)
{
    const struct json *config = hparams_raw(builder->model->hparams);
    struct granite_projectors projectors;
    struct layers layers;
    if (json_count(json_get(config, "spatial_target_layers")) == 0 &&
        json_count(json_get(config, "deepstack_layer_map")) == 0)
        return true;
    if (!granite_projectors_read(config, &projectors, error) || !layers_new(builder, &layers, error))
        return false;
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] = -1;
    for (unsigned i = 1; i < projectors.n; i++)
        if (projectors.list[i].text_layer < layers.n)
            layers.values[projectors.list[i].text_layer] = i;
    return layers_set_i32(builder, "deepstack_mapping", &layers, error);
}
