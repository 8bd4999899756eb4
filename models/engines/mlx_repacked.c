#include "models/engines/mlx_tensors.h"

#include "models/convert/left_out.h"
#include "models/packings/packings.h"
#include "quant/pack/block_groups.h"

#include <assert.h>

bool mlx_is_repackable(const struct checkpoint *checkpoint)
{
    const struct tensor_set *set = checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (block_groups_of(set->tensors[i].dtype) != NULL)
            return true;
    const struct unpacked_weights *found = &packings_of(checkpoint)->found;
    for (size_t i = 0; i < found->n_weights; i++)
        if (found->weights[i].forms->groups != NULL)
            return true;
    return false;
}

/* Notes which quantized weights are whole, by reason. */
static void note_whole(const struct mlx_repacked *repacked, const struct mlx_tensors *codes,
                       const struct checkpoint *checkpoint)
{
    static const char rearranged[] = "the class takes its groups apart, or changes its values";
    struct left_out reasons[LEFT_OUT_MAX + 1] = {{0}};
    for (size_t i = 0; i < codes->n_tensors; i++) {
        bool is_quantized = codes->tensors[i].reason != NULL || codes->tensors[i].view->dtype->kind == DTYPE_BLOCK;
        if (repacked->groups[i].mode == NULL && is_quantized)
            left_out_add(reasons, codes->tensors[i].reason != NULL ? codes->tensors[i].reason : rearranged,
                         codes->tensors[i].module);
    }
    for (const struct left_out *reason = reasons; reason->reason != NULL; reason++)
        if (reason->n_tensors == 1)
            checkpoint_note(checkpoint, SUBJECT_REPACKED, "'%.200s' stays whole in F32: %s", reason->first,
                            reason->reason);
        else
            checkpoint_note(checkpoint, SUBJECT_REPACKED, "%zu weights stay whole in F32, '%.200s' first: %s",
                            reason->n_tensors, reason->first, reason->reason);
}

/* Reports whether a module is a stack of experts, and no other stack. */
static bool is_of_experts(const struct mlx_tensor *tensor)
{
    return tensor->view->rank == 3 && !mlx_list_ends("embed_q unembed_out", tensor->module);
}

static bool find_groups(struct arena *arena, struct mlx_tensors parts[MLX_PARTS], struct mlx_repacked *repacked,
                        struct error *error)
{
    const struct mlx_tensors *tensors = &repacked->tensors;
    struct mlx_groups *groups = arena_array(arena, tensors->n_tensors + 1, sizeof *groups);
    repacked->groups = groups;
    for (size_t i = 0; i < tensors->n_tensors; i++) {
        const struct view *of_tensor[MLX_PARTS];
        for (unsigned k = 0; k < MLX_PARTS; k++) {
            assert(parts[k].n_tensors == tensors->n_tensors);
            of_tensor[k] = parts[k].tensors[i].view;
        }
        groups[i] = (struct mlx_groups){.mode = NULL};
        bool may_keep = tensors->tensors[i].is_matrix && !tensors->tensors[i].is_changed;
        if (may_keep && !mlx_groups_of(arena, of_tensor, is_of_experts(&tensors->tensors[i]), &groups[i],
                                       &parts[MLX_CODES].tensors[i].reason, error))
            return false;
        if (groups[i].mode != NULL && repacked->usual == NULL)
            repacked->usual = &groups[i];
    }
    return true;
}

bool mlx_repack(struct arena *arena, const struct mlx_family *family, const struct hf_model *model,
                const struct json *config, struct mlx_repacked *ret_repacked, struct error *error)
{
    struct mlx_tensors parts[MLX_PARTS];
    *ret_repacked = (struct mlx_repacked){.usual = NULL};
    if (!mlx_tensors_make(arena, family, model, config, NULL, &ret_repacked->tensors, error))
        return false;
    for (enum mlx_part part = MLX_CODES; part < MLX_PARTS; part++)
        if (!mlx_tensors_make(arena, family, model, config, &part, &parts[part], error))
            return false;
    if (!find_groups(arena, parts, ret_repacked, error))
        return false;
    if (ret_repacked->usual != NULL) {
        note_whole(ret_repacked, &parts[MLX_CODES], model->checkpoint);
        return true;
    }
    const char *reason = "none is quantized";
    for (size_t i = 0; i < parts[MLX_CODES].n_tensors; i++)
        reason = parts[MLX_CODES].tensors[i].reason != NULL ? parts[MLX_CODES].tensors[i].reason : reason;
    return error_set(error, "MLX cannot hold any weight with its codes: %s", reason);
}
