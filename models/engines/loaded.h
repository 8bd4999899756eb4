/* A model as transformers has it in memory after from_pretrained(dtype="auto"): the parameters of its class, in one
 * floating-point type. Directories that save_pretrained() writes are made from it.
 *
 * Source: transformers, modeling_utils.py; modeling_*.py for what classes do with names, buffers and tied heads. */
#pragma once

#include "base/buffer.h"
#include "models/config/saved_config.h"
#include "models/huggingface/hf_model.h"

enum loaded_kind {
    LOADED_OTHER,
    LOADED_LINEAR,     /* the weight of a Linear: outputs, inputs */
    LOADED_TRANSPOSED, /* the weight of a Conv1D: inputs, outputs */
    LOADED_HEAD,       /* the weight of lm_head, which is a Linear */
};

struct loaded_tensor {
    const char *name; /* in the class */
    const struct view *view;
    enum loaded_kind kind;
};

struct loaded_model {
    const struct hf_model *model;
    struct json_document *config;  /* the source's, without its packing */
    const char *dtype_name;        /* "bfloat16" */
    struct loaded_tensor *tensors; /* in the order of state_dict() */
    size_t n_tensors;
};

/* Makes the model in `arena`, which frees all of it; the other model must outlive it. Reads config.json. Returns NULL,
 * with the reason, if config.json is missing or invalid or names no dtype for a model without weights in floating
 * point, or if a tensor cannot be read. */
const struct loaded_model *loaded_model_new(struct arena *arena, const struct hf_model *model, struct error *error);

/* Appends the text of generation_config.json as a version of transformers saves it; fails if the source's is invalid.
 */
bool loaded_write_generation_config(const struct loaded_model *model, enum transformers version, struct buffer *out,
                                    struct error *error);

/* Returns the length of the name of the module whose weight has this name; 0 if the name is not a weight's. */
size_t loaded_module(const char *name);
