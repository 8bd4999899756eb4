#include "models/merging.h"

#include "formats/layout.h"
#include "quant/convert.h"
#include "quant/product.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

bool merging_scale(const struct merging *merging, const char *name, uint64_t rank, float *ret_scale)
{
    const struct json *config = merging->adapter->config;
    size_t length = strlen(name) - strlen(".weight");
    const struct json *own_rank, *own_alpha;
    uint64_t said;
    double alpha;
    if (!module_patterns_find(merging->ranks, name, length, &own_rank, merging->error) ||
        !module_patterns_find(merging->alphas, name, length, &own_alpha, merging->error))
        return false;
    if (!json_u64(own_rank != NULL ? own_rank : json_get(config, "r"), &said))
        return error_set(merging->error, "adapter_config.json does not say the rank of '%.200s'", name);
    if (said != rank)
        return error_set(merging->error,
                         "tensor '%.200s' is of rank %" PRIu64 ", and adapter_config.json says %" PRIu64, name, rank,
                         said);
    if (!json_double(own_alpha != NULL ? own_alpha : json_get(config, "lora_alpha"), &alpha))
        return error_set(merging->error, "adapter_config.json: lora_alpha of '%.200s' is not a number", name);
    bool is_rs = json_bool(json_get(config, "use_rslora"), false);
    double scale = merging->scale * (alpha / (is_rs ? sqrt((double)rank) : (double)rank));
    *ret_scale = (float)scale;
    return isfinite(*ret_scale) || error_set(merging->error, "tensor '%.200s': its scale is not finite", name);
}

/* Tensors of the base. */

/* What models are called in memory and in their files. */
static const struct {
    const char *in_memory, *stored;
} prefixes[] = {
    {"", ""},
    {"model.language_model.", "language_model.model."},
    {"model.language_model.", "model."},
    {"language_model.model.", "model."},
    {"language_model.", "language_model.model."},
    {"language_model.", "model."},
    {"model.", "model.language_model."},
    {"model.", ""},
    {"transformer.", ""},
    {"", "model."},
    {"", "transformer."},
    {"", "gpt_neox."},
    {"", "language_model."},
};

static struct tensor *find_prefixed(const struct merging *merging, const char *name)
{
    const struct tensor_set *set = merging->named;
    struct arena *arena = merging->adapter->arena;
    const struct tensor *found = NULL;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && found == NULL; i++) {
        size_t length = strlen(prefixes[i].in_memory);
        if (strncmp(name, prefixes[i].in_memory, length) == 0)
            found = tensor_set_find_text(set, arena_printf(arena, "%s%s", prefixes[i].stored, name + length));
    }
    return found != NULL ? &set->tensors[found - set->tensors] : NULL;
}

struct tensor *merging_tensor(const struct merging *merging, const char *name)
{
    static const char in_memory[] = ".mlp.", stored[] = ".block_sparse_moe.";
    struct tensor *found = find_prefixed(merging, name);
    const char *part = found == NULL ? strstr(name, in_memory) : NULL;
    if (part == NULL)
        return found;
    return find_prefixed(merging, arena_printf(merging->adapter->arena, "%.*s%s%s", (int)(part - name), name, stored,
                                               part + strlen(in_memory)));
}

bool merging_check(const struct merging *merging, const struct tensor *tensor, const char *name)
{
    static const char *const dtypes[] = {"F32", "F16", "BF16"};
    if (tensor == NULL)
        return error_set(merging->error, "tensor '%.200s' is not in the base", name);
    if (tensor->refusal != NULL)
        return error_set(merging->error, "tensor '%.200s' of the base: %s", name, tensor->refusal);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(tensor->dtype->name, dtypes[i]) == 0)
            return true;
    if (merging->gguf != NULL && tensor->dtype->kind == DTYPE_BLOCK && dtype_kernels(tensor->dtype).decode != NULL)
        return true;
    return error_set(merging->error, "tensor '%.200s' of the base is %s, into which nothing is merged", name,
                     tensor->dtype->name);
}

const struct view **merging_view(const struct merging *merging, const struct tensor *tensor)
{
    size_t index = (size_t)(tensor - merging->named->tensors);
    const struct view **view = &merging->views[index];
    const struct unpacked *unpacked = merging->unpacked != NULL ? merging->unpacked[index] : NULL;
    if (*view == NULL)
        *view = unpacked != NULL ? unpacked->view : tensor_view(tensor, merging->base->arena);
    return view;
}

bool merging_change(const struct merging *merging, const struct tensor *tensor, enum change change, const char *name)
{
    unsigned char *changes = &merging->changes[tensor - merging->named->tensors];
    if (*changes & change)
        return error_set(merging->error, "tensor '%.200s' is adapted twice, under another name of the base's", name);
    *changes |= (unsigned char)change;
    return true;
}

bool merging_misfit(const struct merging *merging, const struct tensor *tensor, const char *name, uint64_t n_rows,
                    uint64_t n_columns)
{
    char shape[LAYOUT_MAX_RANK * 22];
    return error_set(merging->error, "tensor '%.200s' is %s in the base, and [%" PRIu64 ", %" PRIu64 "] in the adapter",
                     name, layout_shape_text(tensor->shape, tensor->rank, shape, sizeof shape), n_rows, n_columns);
}

void merging_add(const struct merging *merging, const struct tensor *tensor, float scale, const struct view *left,
                 const struct view *right)
{
    if (merging->gguf != NULL) {
        gguf_merging_add(merging->gguf, tensor->name, scale, left, right);
        return;
    }
    const struct view **view = merging_view(merging, tensor);
    *view = view_add_product(merging->base->arena, *view, scale, left, right);
}

bool merging_add_once(const struct merging *merging, const struct tensor *tensor, const char *name, float scale,
                      const struct view *left, const struct view *right)
{
    uint64_t n_rows = left->shape[left->rank - 2], n_columns = right->shape[right->rank - 1];
    if (!merging_check(merging, tensor, name))
        return false;
    if (tensor->rank != left->rank || tensor->shape[tensor->rank - 2] != n_rows ||
        tensor->shape[tensor->rank - 1] != n_columns)
        return merging_misfit(merging, tensor, name, n_rows, n_columns);
    if (!merging_change(merging, tensor, PRODUCT_ADDED, name))
        return false;
    merging_add(merging, tensor, scale, left, right);
    return true;
}
