/* Directories for MLX: a model as mlx_lm.convert writes it on a CPU, quantized or not.
 *
 * The tensors are those of mlx-lm's class for the model (mlx_families.h), in shards; an index; config.json with the
 * parameters of the quantization; a card. A variant is what the options of mlx_lm.convert choose.
 *
 * Source: mlx-lm, mlx_lm/convert.py and mlx_lm/utils.py: load_config(), quantize_model(), save_model(), save_config(),
 * create_model_card(); mlx, python/mlx/nn/layers/quantized.py. */
#pragma once

#include "base/buffer.h"
#include "formats/artifact.h"
#include "models/huggingface/hf_model.h"
#include "quant/grouped.h"

/* A way to quantize, or not: --q-mode with --q-bits, or --quant-predicate. */
struct mlx_mode {
    const char *name;  /* "4bit" */
    const char *mode;  /* "affine", as config.json names it; NULL: nothing is quantized */
    uint8_t bits;      /* the fewer ones of a recipe */
    uint8_t high_bits; /* those of modules that a recipe spares; 0: no recipe */
    uint8_t columns;   /* of a group, unless the variant names others */
    const char *dtype; /* the type of all tensors, for a mode that is named by it; NULL: see the variant */
    bool is_common;    /* listed, without further options; the others are found by name */
};

extern const struct mlx_mode mlx_modes[]; /* up to a NULL name */

struct mlx_variant {
    const struct mlx_mode *mode;
    uint8_t columns;   /* --q-group-size; 0: not given */
    const char *dtype; /* --dtype, as mlx names it: "float16"; NULL: not given */
};

/* Calls `found` for each variant; `name` lives during the call: "4bit", "4bit-g32", "mixed_3_4-g64-f16". */
typedef void mlx_found(void *context, const char *name, const struct mlx_variant *variant);
void mlx_each_variant(mlx_found *found, void *context);

/* A model's tensors as the class of mlx-lm has them, before they are quantized: the same for all variants. */
struct mlx_model;

/* Makes the model in `arena`; `model` must outlive it. Reads config.json and generation_config.json. Fails, with the
 * reason, if mlx-lm has no such class, or has no place for a tensor. */
struct mlx_model *mlx_model_new(struct arena *arena, const struct hf_model *model, struct error *error);

/* Returns the number of shards; 0, with the reason, if the model cannot be quantized so. */
size_t mlx_shards(const struct mlx_model *model, const struct mlx_variant *variant, struct error *error);

/* Writes the name of a shard; returns `out`. */
enum { MLX_SHARD_NAME = 64 };
const char *mlx_shard_name(size_t shard, size_t n_shards, char out[MLX_SHARD_NAME]);

/* Makes the artifact of a shard, with new tensors in `arena`; the caller frees it with artifact_free(). */
bool mlx_artifact(const struct mlx_model *model, const struct mlx_variant *variant, size_t shard, struct arena *arena,
                  struct artifact *ret_artifact, struct error *error);

/* Append the text of model.safetensors.index.json, of config.json, and of README.md. */
bool mlx_write_index(const struct mlx_model *model, const struct mlx_variant *variant, struct buffer *out,
                     struct error *error);
bool mlx_write_config(const struct mlx_model *model, const struct mlx_variant *variant, struct buffer *out,
                      struct error *error);
void mlx_write_card(struct buffer *out);
