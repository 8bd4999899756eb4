/* Where transformers has what a module of mlx-lm holds: sanitize() of the class in mlx-lm, undone (mlx_names.c). */
#pragma once

#include "base/arena.h"

#include <stdbool.h>

enum mlx_half { MLX_WHOLE, MLX_FIRST_HALF, MLX_SECOND_HALF };

struct mlx_place {
    const char *path;   /* of the module; with {}, a module for each matrix of a stack */
    bool is_transposed; /* the last two axes are swapped */
    enum mlx_half half; /* of the rows, or of the columns if it is transposed */
};

/* Returns the place of the module at `path`, which it is itself if mlx-lm does not change it; its text is in the
 * arena. */
struct mlx_place mlx_place_of(struct arena *arena, const char *model_type, const char *path);
