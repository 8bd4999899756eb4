/* Quantized weights as MLX stores them with the values that they have: the codes of a source, which are kept, and the
 * scales and biases of its groups.
 *
 * A part of a weight is a view with the weight's shape, in a dtype of its own whose blocks are groups: a class's rows
 * (mlx_rows.c) stack, slice and rearrange it as they do the weight. A part whose groups these would take apart becomes
 * F32 and is no part any more; nobody reads it. */
#pragma once

#include "models/engines/mlx_families.h"
#include "models/huggingface/hf_model.h"
#include "quant/views/view.h"
#include "text/json.h"

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

/* The tensors of a class of mlx-lm, made from those of a checkpoint by the rows of its family. */

struct mlx_tensor {
    const char *module; /* the path of the module: "model.layers.0.mlp.up_proj" */
    const char *suffix; /* of the tensor's name: ".weight", ".bias"; "" for a tensor that is no module */
    const struct view *view;
    uint64_t layer;     /* 0 outside of layers */
    bool is_matrix;     /* can be quantized */
    bool is_plain;      /* is not quantized unless by a recipe */
    bool keeps_type;    /* is not cast */
    bool is_of_branch;  /* of a module that contains others: mlx-lm does not count it as a parameter */
    bool is_changed;    /* has other values than the checkpoint's */
    const char *reason; /* among parts: why the weight has none; NULL: it is not quantized, or has the part */
};

struct mlx_tensors {
    struct mlx_tensor *tensors; /* in the order in which the class makes them */
    size_t n_tensors;
    uint64_t n_layers;
};

/* Makes the tensors in `arena`, or a part of each (mlx_groups.h), in the same order; the values of those without the
 * part. NULL: values. Fails, with the reason, if a tensor does not fit its row, or if the class has none of its name.
 */
bool mlx_tensors_make(struct arena *arena, const struct mlx_family *family, const struct hf_model *model,
                      const struct json *config, const enum mlx_part *part, struct mlx_tensors *ret_tensors,
                      struct error *error);

/* The same tensors with the codes of a quantized source: what mlx/repacked/ holds. */
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
