#include "models/packings/refusals.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Name endings, and the methods whose converter leaves such tensors out. All but the last are for activations. */
static const struct harmless {
    const char *suffix;
    const char *methods[2];
} harmless[] = {
    {".activation_scale", {"fp8"}},
    {"_activation_scale", {"fp8"}},
    {".qscale_act", {"fp8"}},
    {".input_scale", {"modelopt"}},
    {".k_scale", {"modelopt"}},
    {".v_scale", {"modelopt"}},
    {".k_cache_scale", {"gemma"}},
    {".v_cache_scale", {"gemma"}},
    {".output_scale", {NULL}},
    {".q_scale", {NULL}},
    {".input_zero_point", {NULL}},
    {".output_zero_point", {NULL}},
    {".input_global_scale", {"compressed-tensors"}},
    {"scaled_fp8", {NULL}}, /* the mark of ComfyUI's older files */
};

bool left_over_is_harmless(const struct tensor *tensor, const char *const **ret_methods)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (packing_has_suffix(tensor, harmless[i].suffix)) {
            if (ret_methods != NULL)
                *ret_methods = harmless[i].methods;
            return true;
        }
    return false;
}

/* Reports whether the packing names the tensor, whose name goes on with `rest` after the module's, as harmless. */
static bool is_beside(const struct packing *packing, const char *rest)
{
    for (const char *const *suffix = packing->beside; suffix != NULL && *suffix != NULL; suffix++)
        if (strcmp(*suffix, rest) == 0)
            return true;
    return false;
}

/* Returns the packed weight to whose module the tensor belongs; NULL: none. */
static struct unpacked *owner_of(const struct text_index *modules, const struct tensor *tensor,
                                 struct unpacked_weights *found, size_t *ret_length)
{
    size_t place;
    for (size_t length = tensor->name_length; length-- > 0;)
        if (tensor->name[length] == '.' && text_index_find(modules, tensor->name, length, &place)) {
            *ret_length = length;
            return &found->weights[place];
        }
    return NULL;
}

static void refuse_owner(const struct packing_input *input, const struct tensor *tensor, struct unpacked *owner,
                         size_t length)
{
    static struct unpacked_forms no_forms;
    bool is_text = strlen(tensor->name) == tensor->name_length;
    bool is_stored_weight = is_text && strcmp(tensor->name + length, ".weight") == 0; /* the packed one replaces it */
    if (owner->refusal != NULL || is_stored_weight || packing_has_suffix(tensor, "bias") ||
        left_over_is_harmless(tensor, NULL) || (is_text && is_beside(owner->packing, tensor->name + length)))
        return;
    owner->refusal = arena_printf(input->arena, "'%.200s' is left over: the packing '%s' does not use it", tensor->name,
                                  owner->packing->name);
    owner->view = NULL;
    owner->forms = &no_forms;
}

void left_over_refuse(const struct packing_input *input, struct unpacked_weights *found)
{
    static const char own[] = ".weight";
    const struct tensor_set *set = input->set;
    struct text_index modules = {0};
    bool *is_used = memory_alloc(set->n_tensors + 1);
    memset(is_used, 0, set->n_tensors + 1);
    for (size_t i = 0; i < found->n_weights; i++) {
        const struct unpacked *weight = &found->weights[i];
        for (unsigned j = 0; j < weight->n_parts; j++)
            is_used[weight->parts[j] - set->tensors] = true;
        if (text_ends_with(weight->name, own))
            text_index_add(&modules, weight->name, strlen(weight->name) - strlen(own), i);
    }
    for (size_t i = 0; i < set->n_tensors; i++) {
        size_t length;
        struct unpacked *owner = is_used[i] ? NULL : owner_of(&modules, &set->tensors[i], found, &length);
        if (owner != NULL)
            refuse_owner(input, &set->tensors[i], owner, length);
    }
    text_index_free(&modules);
    free(is_used);
}
