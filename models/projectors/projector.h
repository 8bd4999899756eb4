/* Projectors: the converter's knowledge (--mmproj) of the vision and audio parts of multimodal models.
 *
 * A projector is a family (models/family/family.h) of the architecture "clip", with a `tower`: one file in this folder
 * exporting `const struct family x_projector`, and a row in projectors.c. Its rows relate the names of the tower's
 * tensors; its key rows name hyperparameters of the tower, and by their prefix those of other parts (see
 * hparams_of_tower()). It has no tokenizer.
 *
 * Source: class MmprojModel and its subclasses, conversion/ of llama.cpp. */
#pragma once

#include "models/families/shared.h"

/* Shared by projectors. */

extern const struct key_row tower_keys[];         /* general.file_type */
extern const struct key_row vision_keys[];        /* keys of all vision towers */
extern const struct key_row vision_size_keys[];   /* vision_keys without image_mean and image_std */
extern const struct key_row normalization_keys[]; /* image_mean and image_std */
extern const struct key_row audio_keys[];         /* keys of all audio towers */

/* Hyperparameters for a tower's number of layers. */
#define VISION_BLOCK_COUNT                                                                                             \
    "n_layers|num_hidden_layers|n_layer|num_layers|depth|layers|encoder_layers|vt_num_hidden_layers"
#define AUDIO_BLOCK_COUNT                                                                                              \
    "audio.n_layers|audio.num_hidden_layers|audio.n_layer|audio.num_layers|audio.depth|audio.layers|"                  \
    "audio.encoder_layers"

/* Sets the number of layers to that of the vision or audio tower, whichever has more. */
void tower_count_layers(struct dimensions *dimensions, const struct hparams *hparams);

/* The key for the kind of projector. */
#define PROJECTOR_TYPE(kind)                                                                                           \
    {                                                                                                                  \
        .key = "projector_type", .type = GGUF_STRING, .when = ALWAYS, .text = kind                                     \
    }

/* Sets an array of F32 from the preprocessor's array `from`, which begins with "preprocessor."; fails without it. */
bool set_channels(struct model_builder *builder, const char *key, const char *from, struct error *error);

/* Set image_mean and image_std: to these numbers; or to the preprocessor's, and to these numbers if it has none. Fails
 * if the preprocessor's are invalid. */
void set_normalization(struct model_builder *builder, const double mean[3], const double deviation[3]);
bool emit_normalization_or(struct model_builder *builder, const double mean[3], const double deviation[3],
                           struct error *error);

/* CLIP's numbers, and emit_normalization_or() with them. */
extern const double clip_mean[3], clip_deviation[3];
bool emit_normalization_or_clip(struct model_builder *builder, struct error *error);

/* Sets intermediate_size to the hidden size times mlp_ratio, or times `ratio` without mlp_ratio. */
bool projector_inner_width(struct model_builder *builder, double ratio, struct error *error);

/* Sets image_size, if config.json lacks it, to the side of the square that num_position_embeddings patches make. */
bool adjust_image_of_positions(struct model_builder *builder, struct error *error);

/* Computes how many patches become one along a side, 1 / `ratio`, rounded down. Fails if the hyperparameter `ratio` is
 * missing, or not above 0. */
bool projector_scale_factor(const struct model_builder *builder, const char *ratio, double *ret_value,
                            struct error *error);

/* Rows of patches end with the text model's token [IMG_BREAK], number `id`, whose embedding the file includes: sets the
 * dimension "token" if the checkpoint has `embeddings` and `id` is not 0. Fails if `id` is not one of their rows. */
bool projector_take_break(struct model_builder *builder, const char *embeddings, uint64_t id, struct error *error);

/* Sets use_gelu or use_silu, by hidden_act; fails for any other function. */
bool emit_activation(struct model_builder *builder, struct error *error);

/* Like emit_activation(), but sets no key for other functions. */
bool emit_known_activation(struct model_builder *builder, struct error *error);

/* SigLIP's names in transformers, after the prefix of the projector. */
extern const struct relation_row siglip_tensors[];

/* What a SigLIP in a model's vision_tower has before these names; transformers 5 saves it without the vision_model. */
#define SIGLIP_PREFIXES TEXTS("model.", "vision_tower.vision_model.", "vision_tower.")

/* Whisper's encoder: its names after "audio_tower.", the types of its convolutions, and its keys. */
extern const struct relation_row whisper_tensors[];
extern const struct stored_type whisper_stored_types[];
#define WHISPER_KEYS(kind)                                                                                             \
    PROJECTOR_TYPE(kind), {"audio.num_mel_bins", GGUF_U32, REQUIRED, "num_mel_bins"},                                  \
    {                                                                                                                  \
        "audio.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-5                             \
    }

/* Replaces `prefix` at the beginning of a name by "audio_tower."; the reverse BACKWARD. */
const char *rename_whisper(struct arena *arena, enum direction direction, const char *name, const char *prefix);

/* The vision encoder of Qwen2-VL and of Qwen2.5-VL, which sets the dimension "gated"; and the interval between layers
 * whose attention covers the whole image. Fails if fullatt_block_indexes is missing or irregular. */
extern const struct relation_row qwen2_vision_tensors[];
bool compute_window_pattern(const struct model_builder *builder, double *ret_value, struct error *error);

/* The vision encoder of Qwen3-VL, and the layers whose results go to the text model in addition to the last layer's. */
extern const struct relation_row qwen3_vision_tensors[];
void add_deepstack_dimensions(struct dimensions *dimensions, const struct hparams *hparams);
const char *rename_deepstack(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                             const char *name);
bool emit_deepstack(struct model_builder *builder, struct error *error);

/* Rows of a batch norm: its statistics are one vector, a.blk.{}.conv_norm.statistics, until fold_batch_norms(), a
 * family.arrange, turns each vector into a factor and a summand. Bit-exact with torch. */
void fold_batch_norms(struct model_builder *builder);
#define BATCH_NORM(name)                                                                                               \
    {name ".weight, " name ".bias, " name ".running_mean, " name ".running_var", "a.blk.{}.conv_norm.statistics",      \
     "weight, bias, mean, var -> (weight + bias + mean + var)"},                                                       \
    {                                                                                                                  \
        name ".num_batches_tracked", NULL                                                                              \
    }

/* A key with the value `true`. */
#define FLAG(name)                                                                                                     \
    {                                                                                                                  \
        .key = name, .type = GGUF_BOOL, .when = ALWAYS, .value = 1                                                     \
    }

/* One kernel for two frames; a GGUF has two kernels. */
#define TWO_FRAMES "o c (even + odd) h w -> o c (even h) w, o c (odd h) w"

/* Query, key and value in one matrix. */
#define THIRDS "(q + k + v) ... -> q ..., k ..., v ..."
