#include "models/derive/adapted_parameter.h"

#include <string.h>

const char *parameter_name(struct arena *arena, const struct adapter_pair *pair, const char *target)
{
    static const char weight[] = ".weight", wrapped[] = ".base_layer";
    const char *dot = strrchr(target, '.'), *parameter = dot != NULL ? dot + 1 : target;
    size_t length = strlen(pair->name) - strlen(weight), wanted = dot != NULL ? (size_t)(dot - target) : 0;
    for (int i = 0; i < MODULE_MAX_PARAMETERS && length > strlen(wrapped); i++)
        if (strncmp(pair->name + length - strlen(wrapped), wrapped, strlen(wrapped)) == 0)
            length -= strlen(wrapped);
    if (wanted > length || strncmp(pair->name + length - wanted, target, wanted) != 0)
        return NULL;
    bool is_whole = dot == NULL || wanted == length || pair->name[length - wanted - 1] == '.';
    return is_whole ? arena_printf(arena, "%.*s.%s", (int)length, pair->name, parameter) : NULL;
}

unsigned parameter_fit(const struct adapter_pair *pair, unsigned rank, const uint64_t *shape)
{
    uint64_t n_rows = pair->left->shape[0], n_columns = pair->right->shape[1];
    if (rank == 2)
        return n_rows == shape[0] && n_columns == shape[1] ? FITS : 0;
    if (rank != 3 || shape[0] == 0 || pair->right->shape[0] % shape[0] != 0)
        return 0;
    unsigned fits = n_rows == shape[1] && n_columns == shape[2] ? FITS : 0;
    return fits | (n_rows == shape[2] && n_columns == shape[1] ? FITS_TURNED : 0);
}

void parameter_factors(struct arena *arena, const struct adapter_pair *pair, unsigned rank, const uint64_t *shape,
                       enum parameter_fit fit, const struct view **ret_left, const struct view **ret_right)
{
    *ret_left = pair->left;
    *ret_right = pair->right;
    if (rank == 2)
        return;
    uint64_t n_experts = shape[0], n_terms = pair->right->shape[0] / n_experts;
    const uint64_t a[] = {n_experts, n_terms, pair->right->shape[1]}, b[] = {pair->left->shape[0], n_terms, n_experts};
    static const unsigned expert_first[] = {2, 0, 1};
    *ret_left = view_permute(arena, view_reshape(arena, pair->left, 3, b), expert_first);
    *ret_right = view_reshape(arena, pair->right, 3, a);
    if (fit == FITS_TURNED) {
        const struct view *turned = view_transpose(arena, *ret_left);
        *ret_left = view_transpose(arena, *ret_right);
        *ret_right = turned;
    }
}
