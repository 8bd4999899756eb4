/* Adapters of mlx-lm under the names that transformers has for the modules. */
#include "models/derive/adapter.h"
#include "models/derive/foreign_names.h"
#include "models/facts.h"

#include <string.h>

static void rename_pair(struct arena *arena, struct adapter_pair *pair, const char *model_type)
{
    const char *module = arena_strndup(arena, pair->name, strlen(pair->name) - strlen(".weight"));
    struct mlx_place place = mlx_place_of(arena, model_type, module);
    pair->name = arena_printf(arena, "%s.weight", place.path);
    pair->half = place.half;
    pair->is_stored_turned = place.is_transposed;
}

bool adapter_use_base_names(struct adapter *adapter, const struct checkpoint *base, struct error *error)
{
    bool is_mlx = false;
    for (size_t i = 0; i < adapter->n_pairs; i++)
        is_mlx |= adapter->pairs[i].is_turned;
    if (!is_mlx)
        return true;
    if (!adapter_is_mlx(adapter->config))
        return error_set(error, "adapter_config.json has no lora_parameters.scale, which mlx-lm's matrices need");
    struct error unused;
    const struct config_facts *config = config_facts_of(base, &unused);
    const char *type = config != NULL ? config->model_type : NULL;
    for (size_t i = 0; i < adapter->n_pairs && type != NULL; i++)
        if (adapter->pairs[i].is_turned)
            rename_pair(adapter->arena, &adapter->pairs[i], type);
    return true;
}
