#include "models/derive/merging.h"

#include "base/text.h"
#include "formats/shape.h"
#include "quant/views/convert.h"
#include "quant/views/product.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

bool merging_scale(const struct merging *merging, const char *name, uint64_t rank, float *ret_scale)
{
    double own_scale;
    if (!adapter_scale(merging->adapter->config, merging->ranks, merging->alphas, name, rank, &own_scale,
                       merging->error))
        return false;
    double scale = merging->scale * own_scale;
    *ret_scale = (float)scale;
    return isfinite(*ret_scale) || error_set(merging->error, "tensor '%.200s': its scale is not finite", name);
}

/* Tensors of the base. */

/* Prefixes of names in memory, which adapters have, and in files, in the order of the search. */
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

static const struct tensor *find_prefixed(const struct merging *merging, const char *name)
{
    const struct tensor_set *set = merging->named;
    struct arena *arena = merging->adapter->arena;
    const struct tensor *found = NULL;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && found == NULL; i++) {
        size_t length = strlen(prefixes[i].in_memory);
        if (strncmp(name, prefixes[i].in_memory, length) == 0)
            found = tensor_set_find_text(set, arena_printf(arena, "%s%s", prefixes[i].stored, name + length));
    }
    return found;
}

const struct tensor *merging_tensor(const struct merging *merging, const char *name)
{
    static const char in_memory[] = ".mlp.", stored[] = ".block_sparse_moe.";
    const struct tensor *found = find_prefixed(merging, name);
    const char *part = found == NULL ? strstr(name, in_memory) : NULL;
    if (part == NULL)
        return found;
    return find_prefixed(merging, arena_printf(merging->adapter->arena, "%.*s%s%s", (int)(part - name), name, stored,
                                               part + strlen(in_memory)));
}

bool merging_check(const struct merging *merging, const struct tensor *tensor, const char *name)
{
    static const char *const allowed[] = {"F32", "F16", "BF16"};
    if (tensor == NULL)
        return error_set(merging->error, "tensor '%.200s' is not in the base", name);
    if (tensor->refusal != NULL)
        return error_set(merging->error, "tensor '%.200s' of the base: %s", name, tensor->refusal);
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (strcmp(tensor->dtype->name, allowed[i]) == 0)
            return true;
    if (merging->gguf != NULL && tensor->dtype->kind == DTYPE_BLOCK && dtype_kernels(tensor->dtype).decode != NULL)
        return true;
    return error_set(merging->error, "tensor '%.200s' of the base is %s, which cannot be merged into", name,
                     tensor->dtype->name);
}

const struct view **merging_view(const struct merging *merging, const struct tensor *tensor)
{
    size_t index = (size_t)(tensor - merging->named->tensors);
    const struct view **view = &merging->views[index];
    if (*view == NULL)
        *view = view_unrounded(tensor_view(tensor, merging->merged->arena));
    return view;
}

bool merging_change(const struct merging *merging, const struct tensor *tensor, enum change change, const char *name)
{
    unsigned char *changes = &merging->changes[tensor - merging->named->tensors];
    if (*changes & change)
        return error_set(merging->error, "tensor '%.200s' is adapted twice, under two names of one base tensor", name);
    *changes |= (unsigned char)change;
    return true;
}

bool merging_misfit(const struct merging *merging, const struct tensor *tensor, const char *name, uint64_t n_rows,
                    uint64_t n_columns)
{
    char shape[SHAPE_MAX_RANK * 22];
    return error_set(merging->error, "tensor '%.200s' is %s in the base, but [%" PRIu64 ", %" PRIu64 "] in the adapter",
                     name, shape_text(tensor->shape, tensor->rank, shape, sizeof shape), n_rows, n_columns);
}

void merging_add(const struct merging *merging, const struct tensor *tensor, float scale, const struct view *left,
                 const struct view *right)
{
    if (merging->gguf != NULL && !merging_is_dora(merging)) {
        gguf_merging_add(merging->gguf, tensor->name, scale, left, right);
        return;
    }
    const struct view **view = merging_view(merging, tensor);
    *view = view_add_product(merging->merged->arena, *view, scale, left, right);
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
