/* Projectors: what the converter's --mmproj knows of the parts of multimodal models that see and hear.
 *
 * A projector is a family (models/families/family.h) of the architecture "clip", with a `tower`: one file in this
 * folder exporting `const struct family x_projector`, and a row in projectors.c. Its rows relate the names of the
 * tower's tensors; its key rows name hyperparameters of the tower, and by their prefix those of other parts (see
 * hparams_of_tower()). It has no tokenizer.
 *
 * Source: class MmprojModel and those derived from it, conversion/ of llama.cpp 34af94cd9. */
#pragma once

#include "models/families/family.h"

/* All projectors, NULL at the end. */
extern const struct family *const projectors[];

/* The projector of the model that `text` describes; NULL, with an error that says why there is none. *ret_name is the
 * row of its architecture. */
const struct family *projector_find(const struct hparams *text, const struct family_name **ret_name,
                                    struct error *error);

/* Whether config.json says anything of a part that sees or hears. */
bool projector_is_described(const struct hparams *text);

/* Layers of the one part or the other, whichever has more. */
void tower_count_layers(struct facts *facts, const struct hparams *hparams);

/* What projectors share. */

extern const struct key_row tower_keys[];         /* general.file_type */
extern const struct key_row vision_keys[];        /* what every tower that sees has */
extern const struct key_row vision_size_keys[];   /* the same without image_mean and image_std */
extern const struct key_row normalization_keys[]; /* those two */
extern const struct key_row audio_keys[];         /* what every one that hears has */

/* The hyperparameters under which towers have the number of layers. */
#define VISION_BLOCK_COUNT                                                                                             \
    "n_layers|num_hidden_layers|n_layer|num_layers|depth|layers|encoder_layers|vt_num_hidden_layers"
#define AUDIO_BLOCK_COUNT                                                                                              \
    "audio.n_layers|audio.num_hidden_layers|audio.n_layer|audio.num_layers|audio.depth|audio.layers|"                  \
    "audio.encoder_layers"

/* The key of the kind of projector. */
#define PROJECTOR_TYPE(kind)                                                                                           \
    {                                                                                                                  \
        .key = "projector_type", .type = GGUF_STRING, .when = ALWAYS, .text = kind                                     \
    }

/* image_mean and image_std, where they are not the preprocessor's; those of CLIP; and those of CLIP where the
 * preprocessor has none. */
void set_normalization(struct draft *draft, const double mean[3], const double deviation[3]);
extern const double clip_mean[3], clip_deviation[3];
bool emit_normalization_or_clip(struct draft *draft, struct error *error);

/* intermediate_size as the hidden size times mlp_ratio, or `ratio` where that is absent. */
bool projector_inner_width(struct draft *draft, double ratio, struct error *error);

/* An image_size that config.json does not have, of the square that num_position_embeddings make. */
bool adjust_image_of_positions(struct draft *draft, struct error *error);

/* How many patches a hyperparameter makes one, an inverse ratio, from which that is rounded down. */
bool projector_scale_factor(const struct draft *draft, const char *ratio, double *ret_value, struct error *error);

/* Rows of patches end with the token [IMG_BREAK] of the text model, number `id`, whose embedding goes along: the fact
 * "token", where the checkpoint has the text model's `embeddings`. */
bool projector_take_break(struct draft *draft, const char *embeddings, uint64_t id, struct error *error);

/* use_gelu or use_silu, by hidden_act; fails for any other function. */
bool emit_activation(struct draft *draft, struct error *error);

/* The same where neither is a reason to fail. */
bool emit_known_activation(struct draft *draft, struct error *error);

/* SigLIP as transformers names it, after the prefix of the projector. */
extern const struct relation_row siglip_tensors[];

/* Whisper's encoder: its names after "audio_tower.", the types of its convolutions, and its keys. */
extern const struct relation_row whisper_tensors[];
extern const struct stored_type whisper_stored_types[];
#define WHISPER_KEYS(kind)                                                                                             \
    PROJECTOR_TYPE(kind), {"audio.num_mel_bins", GGUF_U32, REQUIRED, "num_mel_bins"},                                  \
    {                                                                                                                  \
        "audio.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-5                             \
    }

/* "audio_tower." for a prefix that a name has; the other way round backwards. */
const char *rename_whisper(struct arena *arena, enum direction direction, const char *name, const char *prefix);

/* What sees of Qwen2-VL and Qwen2.5-VL, the latter with the fact "gated"; every how many layers of that attention is
 * over all of the image, not a window. */
extern const struct relation_row qwen2_vision_tensors[];
bool compute_window_pattern(const struct draft *draft, double *ret_value, struct error *error);

/* What sees of Qwen3-VL: the layers whose results the text model is given besides the last one's. */
extern const struct relation_row qwen3_vision_tensors[];
void add_deepstack_facts(struct facts *facts, const struct hparams *hparams);
const char *rename_deepstack(struct arena *arena, const struct facts *facts, enum direction direction,
                             const char *name);
bool emit_deepstack(struct draft *draft, struct error *error);

/* Rows of a batch norm: its statistics are one vector, a.blk.{}.conv_norm.statistics, until fold_batch_norms(), a
 * family.arrange, makes a factor and a summand of each. Bit-exact with torch. */
void fold_batch_norms(struct draft *draft);
#define BATCH_NORM(name)                                                                                               \
    {name ".weight, " name ".bias, " name ".running_mean, " name ".running_var", "a.blk.{}.conv_norm.statistics",      \
     "weight, bias, mean, var -> (weight + bias + mean + var)"},                                                       \
    {                                                                                                                  \
        name ".num_batches_tracked", NULL                                                                              \
    }

/* A key that is `true`. */
#define FLAG(name)                                                                                                     \
    {                                                                                                                  \
        .key = name, .type = GGUF_BOOL, .when = ALWAYS, .value = 1                                                     \
    }

/* Two images in time lie in one kernel, of which a GGUF has two. */
#define TWO_FRAMES "o c (even + odd) h w -> o c (even h) w, o c (odd h) w"

/* Query, key and value in one matrix. */
#define THIRDS "(q + k + v) ... -> q ..., k ..., v ..."
