/* The tensors of a class of mlx-lm with the codes of a quantized source: what mlx/repacked/ holds. */
#pragma once

#include "models/engines/mlx_tensors.h"

struct mlx_repacked {
    struct mlx_tensors tensors;      /* the values, exact */
    const struct mlx_groups *groups; /* by tensor; without a mode, the tensor is whole */
    const struct mlx_groups *usual;  /* those of the first quantized module */
};

/* Reports whether a checkpoint has quantized weights of a kind that MLX may hold. */
bool mlx_is_repackable(const struct checkpoint *checkpoint);

/* Makes the tensors in `arena` from a model of hf_model_with_codes(). Notes which weights are whole, and why. Fails
 * like mlx_tensors_make(), and if no weight can be kept. */
bool mlx_repack(struct arena *arena, const struct mlx_family *family, const struct hf_model *model,
                const struct json *config, struct mlx_repacked *ret_repacked, struct error *error);
