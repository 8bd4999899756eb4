/* Quantized weights as MLX stores them with the values that they have: the codes of a source, which are kept, and the
 * scales and biases of its groups.
 *
 * A part of a weight is a view with the weight's shape, in a dtype of its own whose blocks are groups: a class's rows
 * (mlx_rows.c) stack, slice and rearrange it as they do the weight. A part whose groups these would take apart becomes
 * F32 and is no part any more; nobody reads it. */
#pragma once

#include "quant/views/view.h"

enum mlx_part { MLX_CODES, MLX_SCALES, MLX_BIASES, MLX_FACTORS, MLX_PARTS };

struct mlx_groups {
    const char *mode; /* "affine", "mxfp4", "mxfp8", "nvfp4" */
    unsigned bits, columns;
    /* U32; U8, F16, BF16 or F32; biases of these or NULL; a factor for each expert, F32 [experts], or NULL */
    const struct view *parts[MLX_PARTS];
};

/* Gets a part of a weight, blocks of ggml or a view with code_groups (models/packings/packed.h). *ret_part stays NULL
 * if MLX cannot hold the weight's values, for *ret_reason, or if the weight has no such part; *ret_reason stays as it
 * is for a weight that is not quantized. Reads zero points and the order of columns if the packing stores them. Fails
 * if they cannot be read. */
bool mlx_part_of(struct arena *arena, const struct view *weight, enum mlx_part part, const struct view **ret_part,
                 const char **ret_reason, struct error *error);

/* Gets the tensors of a weight whose parts have been rearranged; without a mode if one of them is no part any more, or
 * if it has factors without being a stack of experts: mlx-lm reads factors of those alone. Reads factors, and fails if
 * they cannot be read. */
bool mlx_groups_of(struct arena *arena, const struct view *const parts[MLX_PARTS], bool is_of_experts,
                   struct mlx_groups *ret_groups, const char **ret_reason, struct error *error);
