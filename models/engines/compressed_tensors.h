/* Directories in compressed-tensors, for vLLM and SGLang: a model quantized from its weights alone, as llmcompressor
 * writes it. A scheme is a row of the table.
 *
 * model_free_ptq keeps the files of the source, or of hf/ if the source is not made of safetensors files: each with the
 * same tensors, in which every weight of a linear module becomes codes and scales; an index; config.json with the
 * scheme. All other files are the source's own.
 *
 * oneshot() quantizes the model that transformers loads, and saves it in one file, with recipe.yaml. A config.json
 * without "tie_word_embeddings" or a dtype is replaced by that of transformers 5; this one is the source's even then.
 *
 * Source: llmcompressor, entrypoints/model_free/, transformers/compression/compressed_tensors_utils.py, recipe/;
 * compressed-tensors, quantization/quant_scheme.py, quantization/utils/helpers.py and compressors/. */
#pragma once

#include "base/buffer.h"
#include "formats/artifact.h"
#include "formats/json.h"
#include "models/huggingface/hf_model.h"
#include "quant/grouped.h"

/* The numbers of a quantized tensor in config.json. */
struct ct_numbers {
    const char *type; /* "float" or "int"; NULL: not quantized */
    uint8_t bits;
    const char *strategy;    /* "channel", "group", "token" ... */
    uint16_t group;          /* 0: null */
    const char *scale_dtype; /* NULL: null */
};

/* The parts of a weight. */
enum ct_form {
    CT_PLAIN,   /* .weight with codes of 8 bits, .weight_scale */
    CT_PACKED,  /* .weight_packed in I32, .weight_scale, .weight_shape, and zero points if there are any */
    CT_NIBBLES, /* .weight_packed in U8, .weight_scale, and .weight_global_scale if the tensor has one */
};

struct ct_scheme {
    const char *name;   /* the official one: "FP8_DYNAMIC" */
    bool is_rare;       /* found by name, but not listed */
    const char *format; /* "float-quantized" */
    enum ct_form form;
    const char *code_dtype; /* of the units that hold codes */
    struct grouping grouping;
    struct ct_numbers weights, activations;
};

extern const struct ct_scheme ct_schemes[]; /* up to a NULL name */

/* Reports whether the weights go to files like the source's: if it is made of safetensors files with plain weights. If
 * not, or if weights are unpacked first (`is_packed`), they go to model.safetensors alone. */
bool ct_keeps_files(const struct checkpoint *checkpoint, bool is_packed);

/* A model's tensors by file, before they are quantized: the same for all schemes. */
struct ct_model;

/* Make the model in `arena`, for model_free_ptq and for oneshot(); `model` must outlive it. `keeps_files` is
 * ct_keeps_files(). `patterns` are those of the modules to leave as they are (ct_ignored.h), up to a NULL, and live as
 * long; NULL: those of the tool's own examples. Read config.json. Fail if config.json cannot be read, and
 * ct_model_load() for models that oneshot() handles in a way not known here. */
struct ct_model *ct_model_new(struct arena *arena, const struct hf_model *model, bool keeps_files,
                              const char *const *patterns, struct error *error);
struct ct_model *ct_model_load(struct arena *arena, const struct hf_model *model, const char *const *patterns,
                               struct error *error);

/* Makes the artifact of a file, with new tensors in `arena`; the caller frees it with artifact_free(). Fails, with the
 * reason, if the model cannot be quantized by the scheme. */
bool ct_artifact(const struct ct_model *model, const struct ct_scheme *scheme, size_t file, struct arena *arena,
                 struct artifact *ret_artifact, struct error *error);

/* Append the text of model.safetensors.index.json, and of config.json. */
bool ct_write_index(const struct ct_model *model, const struct ct_scheme *scheme, struct buffer *out,
                    struct error *error);
bool ct_write_config(const struct ct_model *model, const struct ct_scheme *scheme, struct buffer *out,
                     struct error *error);

/* Append the text of recipe.yaml and of generation_config.json, which oneshot() writes; for a model of ct_model_load().
 */
bool ct_write_recipe(const struct ct_model *model, const struct ct_scheme *scheme, struct buffer *out,
                     struct error *error);
bool ct_write_generation_config(const struct ct_model *model, struct buffer *out, struct error *error);
