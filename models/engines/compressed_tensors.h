/* Directories in compressed-tensors, for vLLM and SGLang: a model quantized from its weights alone, as llmcompressor's
 * model_free_ptq writes it.
 *
 * The files are those of the source, or of hf/ if the source is not made of safetensors files: each with the same
 * tensors, in which every weight of a linear module becomes codes and scales; an index; config.json with the scheme.
 * All other files are the source's own. A scheme is a row of the table.
 *
 * Source: llmcompressor 0.14, entrypoints/model_free/; compressed-tensors 0.19, quantization/quant_scheme.py,
 * quantization/utils/helpers.py and compressors/. */
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

/* Makes the model in `arena`; `model` must outlive it. `keeps_files` is ct_keeps_files(). Reads config.json. Fails if
 * config.json cannot be read. */
struct ct_model *ct_model_new(struct arena *arena, const struct hf_model *model, bool keeps_files, struct error *error);

/* Makes the artifact of a file, with new tensors in `arena`; the caller frees it with artifact_free(). Fails, with the
 * reason, if the model cannot be quantized by the scheme. */
bool ct_artifact(const struct ct_model *model, const struct ct_scheme *scheme, size_t file, struct arena *arena,
                 struct artifact *ret_artifact, struct error *error);

/* Append the text of model.safetensors.index.json, and of config.json. */
bool ct_write_index(const struct ct_model *model, const struct ct_scheme *scheme, struct buffer *out,
                    struct error *error);
bool ct_write_config(const struct ct_model *model, const struct ct_scheme *scheme, struct buffer *out,
                     struct error *error);
