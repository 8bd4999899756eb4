/* DoRA: W becomes m (W + scale B A) / |W + scale B A|, with a norm m for each output of the layer. Outputs are rows of
 * a weight, but columns of one that is stored transposed, and of embeddings; mlx-lm has a norm for each token instead.
 *
 * Sources: peft, tuners/lora/dora.py and variants.py; mlx-lm, tuner/dora.py. */
#include "base/arena.h"
#include "base/text.h"
#include "models/derive/merging.h"
#include "quant/views/convert.h"
#include "quant/views/norms.h"

#include <string.h>

static const char norms_name[] = ".lora_magnitude_vector", mlx_norms_name[] = ".m";

bool merging_is_dora(const struct merging *merging)
{
    const struct json *config = merging->adapter->config;
    return json_bool(json_get(config, "use_dora"), false) || json_string_is(json_get(config, "fine_tune_type"), "dora");
}

bool merging_is_norms(const char *name)
{
    return strstr(name, norms_name) != NULL || text_ends_with(name, mlx_norms_name);
}

/* Returns the norms of a pair's layer; NULL: none. "lora_B.default.weight" has the adapter's name, and so have its
 * norms. */
static const struct tensor *find_norms(const struct merging *merging, const struct adapter_pair *pair)
{
    static const char *const ends[] = {"", ".weight"};
    const struct tensor_set *set = merging->adapter->checkpoint->tensors;
    struct arena *arena = merging->adapter->arena;
    const char *b = pair->is_turned ? ".lora_b" : pair->is_embedding ? ".lora_embedding_B" : ".lora_B";
    const char *name = pair->b->name, *at = strstr(name, b), *after = at + strlen(b);
    const struct tensor *found = NULL;
    if (pair->is_turned)
        return tensor_set_find_text(set, arena_printf(arena, "%.*s%s", (int)(at - name), name, mlx_norms_name));
    size_t of_adapter = strcmp(after, ".weight") == 0 || *after == '\0' ? 0 : 1 + strcspn(after + 1, ".");
    for (size_t i = 0; i < sizeof ends / sizeof *ends && found == NULL; i++)
        found = tensor_set_find_text(set, arena_printf(arena, "%.*s%s%.*s%s", (int)(at - name), name, norms_name,
                                                       (int)of_adapter, after, ends[i]));
    return found;
}

bool merge_norms(const struct merging *merging, const struct adapter_pair *pair, bool is_turned)
{
    struct checkpoint *merged = merging->merged;
    const struct tensor *norms = find_norms(merging, pair), *tensor = merging_tensor(merging, pair->name);
    bool is_of_rows = pair->is_turned ? !pair->is_stored_turned : !is_turned;
    if (norms == NULL)
        return error_set(merging->error, "tensor '%.200s' has no %s, which DoRA needs", pair->name,
                         pair->is_turned ? mlx_norms_name + 1 : norms_name + 1);
    if (tensor == NULL)
        return error_set(merging->error, "tensor '%.200s': DoRA cannot be merged into an output that is the embedding",
                         pair->name);
    if (norms->refusal != NULL || dtype_kernels(norms->dtype).decode == NULL || norms->rank != 1 ||
        norms->shape[0] != tensor->shape[is_of_rows ? 0 : 1])
        return error_set(merging->error, "tensor '%.200s' is no list of a norm for each %s of '%.200s'", norms->name,
                         is_of_rows ? "row" : "column", pair->name);
    if (merging->gguf != NULL && gguf_merging_is_changed(merging->gguf))
        return error_set(merging->error, "tensor '%.200s': DoRA cannot be merged into a GGUF after another adapter",
                         pair->name);
    const struct view **view = merging_view(merging, tensor), *values = tensor_view(norms, merged->arena);
    *view = is_of_rows ? view_with_row_norms(merged->arena, *view, values)
                       : view_with_column_norms(merged->arena, *view, values, merged->findings);
    if (merging->gguf != NULL)
        gguf_merging_replace(merging->gguf, tensor->name, *view);
    return true;
}
