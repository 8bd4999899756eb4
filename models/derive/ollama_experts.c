/* Gives the experts of a model in Ollama's store, which has a blob for the experts of a layer, the names that were
 * published: a matrix for each expert, instead of a stack for each projection. Quantized stacks are cut like others.
 *
 * Source: sources/location_ollama.h. */
#include "base/text.h"
#include "models/derive/derive.h"

#include <inttypes.h>
#include <string.h>

static const char experts[] = ".experts.";

/* Returns the part of a name after ".experts." if the name is that of a stack: "gate_proj.weight.scale"; else NULL. */
static const char *rest_of_stack(const struct tensor *tensor)
{
    const char *at = strlen(tensor->name) == tensor->name_length ? strstr(tensor->name, experts) : NULL;
    const char *rest = at != NULL ? at + strlen(experts) : NULL;
    bool is_stack = rest != NULL && strchr("0123456789", *rest) == NULL && tensor->refusal == NULL;
    return is_stack && (tensor->rank == 3 || text_ends_with(rest, ".global_scale")) ? rest : NULL;
}

/* Returns the number of experts of the stack whose part a factor is; 0: there is none. */
static uint64_t count_of_factor(const struct tensor_set *set, const struct tensor *factor, struct arena *arena)
{
    size_t length = strlen(factor->name) - strlen(".global_scale");
    const struct tensor *stack = tensor_set_find_text(set, arena_strndup(arena, factor->name, length));
    return stack != NULL && stack->rank == 3 ? stack->shape[0] : 0;
}

static bool add_experts(const struct tensor_set *from, const struct tensor *tensor, const char *rest,
                        struct tensor_set *to, struct arena *arena, struct error *error)
{
    const struct view *stack = tensor_view(tensor, arena);
    uint64_t n = tensor->rank == 3 ? tensor->shape[0] : count_of_factor(from, tensor, arena);
    bool is_common = tensor->rank != 3 && stack->n_elements == 1, is_own = tensor->rank != 3 && stack->n_elements == n;
    if (n == 0 || n > TENSOR_SET_MAX - to->n_tensors || (tensor->rank != 3 && !is_common && !is_own))
        return error_set(error, "tensor '%.200s' is not a stack of experts", tensor->name);
    for (uint64_t i = 0; i < n; i++) {
        const struct view *one = stack;
        if (!is_common) {
            one = tensor->rank == 3 ? stack : view_reshape(arena, stack, 1, &n);
            one = view_slice(arena, one, 0, i, 1, 1);
        }
        if (tensor->rank == 3)
            one = view_reshape(arena, one, 2, tensor->shape + 1);
        tensor_set_add_view(
            to, arena_printf(arena, "%.*s%" PRIu64 ".%s", (int)(rest - tensor->name), tensor->name, i, rest), one);
    }
    return true;
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    bool has_stack = false;
    (void)options;
    for (size_t i = 0; text_starts_with(from->path, "ollama://") && i < from->tensors->n_tensors && !has_stack; i++)
        has_stack = rest_of_stack(&from->tensors->tensors[i]) != NULL;
    if (!has_stack)
        return true;
    struct checkpoint *derived = *ret_derived = checkpoint_derive(from);
    struct tensor_set *set = tensor_set_new(derived->arena);
    for (size_t i = 0; i < from->tensors->n_tensors; i++) {
        const struct tensor *tensor = &from->tensors->tensors[i];
        const char *rest = rest_of_stack(tensor);
        if (rest == NULL)
            tensor_set_add(set, tensor);
        else if (!add_experts(from->tensors, tensor, rest, set, derived->arena, error))
            return false;
    }
    derived->tensors = set;
    return tensor_set_seal(set, error);
}

const struct derivation ollama_experts_derivation = {.apply = apply};
