/* mlx-lm's pairs for stacks of experts, and for halves of what is one tensor in the base. */
#include "formats/shape.h"
#include "models/derive/merging.h"
#include "quant/views/convert.h"
#include "quant/views/product.h"

#include <inttypes.h>
#include <string.h>

static const char each[] = "{}", weight[] = ".weight";

/* Returns the base's tensor of a module: "MODULE.weight", or "MODULE", as stacks may be named. */
static const struct tensor *find_stack(const struct merging *merging, const char *name)
{
    const struct tensor *found = merging_tensor(merging, name);
    if (found != NULL)
        return found;
    return merging_tensor(merging, arena_strndup(merging->adapter->arena, name, strlen(name) - strlen(weight)));
}

const char *adapter_expert_name(struct arena *arena, const struct adapter_pair *pair, uint64_t expert)
{
    const char *at = strstr(pair->name, each);
    return arena_printf(arena, "%.*s%" PRIu64 "%s", (int)(at - pair->name), pair->name, expert, at + strlen(each));
}

const struct view *adapter_expert_matrix(struct arena *arena, const struct view *stack, uint64_t expert)
{
    return view_reshape(arena, view_slice(arena, stack, 0, expert, 1, 1), 2, stack->shape + 1);
}

/* Adds a stack's products to the matrices of the experts. */
static bool merge_experts(const struct merging *merging, const struct adapter_pair *pair, float scale)
{
    struct arena *arena = merging->merged->arena;
    for (uint64_t i = 0; i < pair->left->shape[0]; i++) {
        const char *name = adapter_expert_name(merging->adapter->arena, pair, i);
        if (!merging_add_once(merging, merging_tensor(merging, name), name, scale,
                              adapter_expert_matrix(arena, pair->left, i),
                              adapter_expert_matrix(arena, pair->right, i)))
            return false;
    }
    return true;
}

/* Adds a product to one half of a tensor's rows or, if it is stored transposed, columns. */
static bool merge_half(const struct merging *merging, const struct tensor *tensor, const struct adapter_pair *pair,
                       enum mlx_half half, float scale)
{
    struct arena *arena = merging->merged->arena;
    const struct view *left = pair->left, *right = pair->right, *halves[2];
    unsigned rank = left->rank, axis = pair->is_stored_turned ? rank - 1 : rank - 2, other = rank - 1 + rank - 2 - axis;
    uint64_t n = left->shape[rank - 2];
    if (merging->gguf != NULL)
        return error_set(merging->error, "tensor '%.200s' is half of a tensor, which cannot be merged into a GGUF",
                         pair->name);
    if (!merging_check(merging, tensor, pair->name))
        return false;
    if (tensor->rank != rank || tensor->shape[axis] % 2 != 0 || tensor->shape[axis] / 2 != n ||
        tensor->shape[other] != right->shape[rank - 1] || (rank == 3 && tensor->shape[0] != left->shape[0]))
        return merging_misfit(merging, tensor, pair->name, n, right->shape[rank - 1]);
    if (!merging_change(merging, tensor, half == MLX_FIRST_HALF ? FIRST_HALF_ADDED : SECOND_HALF_ADDED, pair->name))
        return false;
    const struct view **view = merging_view(merging, tensor);
    for (unsigned i = 0; i < 2; i++)
        halves[i] = view_convert(arena, view_slice(arena, *view, axis, i * n, n, 1), &f32_dtype);
    const struct view **changed = &halves[half == MLX_FIRST_HALF ? 0 : 1];
    if (pair->is_stored_turned) {
        left = view_transpose(arena, pair->right);
        right = view_transpose(arena, pair->left);
    }
    *changed = view_add_product(arena, *changed, scale, left, right);
    *view = view_concatenate(arena, halves, 2, axis);
    return true;
}

/* Parts of an expert's name, and where a stack that has both matrices of all experts, or one, holds them. */
static const struct {
    const char *part, *stack;
    enum mlx_half half;
} fused[] = {
    {"gate_proj", "gate_up_proj", MLX_FIRST_HALF}, {"w1", "gate_up_proj", MLX_FIRST_HALF},
    {"up_proj", "gate_up_proj", MLX_SECOND_HALF},  {"w3", "gate_up_proj", MLX_SECOND_HALF},
    {"down_proj", "down_proj", MLX_WHOLE},         {"w2", "down_proj", MLX_WHOLE},
};

/* Finds the stack of a base that holds all experts in one tensor; false: the base has a matrix for each. */
static bool find_fused(const struct merging *merging, const struct adapter_pair *pair, const struct tensor **ret_tensor,
                       enum mlx_half *ret_half)
{
    const char *at = strstr(pair->name, each), *part = at + strlen(each) + 1;
    for (size_t i = 0; i < sizeof fused / sizeof *fused; i++) {
        size_t length = strlen(fused[i].part);
        if (strncmp(part, fused[i].part, length) != 0 || strcmp(part + length, weight) != 0)
            continue;
        *ret_tensor = find_stack(merging, arena_printf(merging->adapter->arena, "%.*s%s%s", (int)(at - pair->name),
                                                       pair->name, fused[i].stack, weight));
        *ret_half = fused[i].half;
        return *ret_tensor != NULL;
    }
    return false;
}

static bool merge_whole_stack(const struct merging *merging, const struct tensor *tensor,
                              const struct adapter_pair *pair, float scale)
{
    struct arena *arena = merging->merged->arena;
    const struct view *left = pair->left, *right = pair->right;
    if (pair->is_stored_turned) {
        left = view_transpose(arena, pair->right);
        right = view_transpose(arena, pair->left);
    }
    return merging_add_once(merging, tensor, pair->name, scale, left, right);
}

bool merge_stack(const struct merging *merging, const struct adapter_pair *pair, bool *ret_merged)
{
    const struct tensor *tensor = NULL;
    enum mlx_half half = pair->half;
    float scale;
    *ret_merged = pair->left->rank == 3 || half != MLX_WHOLE;
    if (!*ret_merged)
        return true;
    if (merging_is_dora(merging))
        return error_set(merging->error, "tensor '%.200s' is a part of a tensor, which DoRA cannot be merged into",
                         pair->name);
    if (!merging_scale(merging, pair->name, pair->left->shape[pair->left->rank - 1], &scale))
        return false;
    bool is_each = pair->left->rank == 3 && strstr(pair->name, each) != NULL;
    if (is_each && !find_fused(merging, pair, &tensor, &half))
        return merge_experts(merging, pair, scale);
    if (!is_each)
        tensor = find_stack(merging, pair->name);
    return half == MLX_WHOLE ? merge_whole_stack(merging, tensor, pair, scale)
                             : merge_half(merging, tensor, pair, half, scale);
}
