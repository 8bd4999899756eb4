/* Directories that transformers loads with bitsandbytes: every linear module but the output head in 4 or 8 bits, as
 * from_pretrained(quantization_config=BitsAndBytesConfig(...)) and save_pretrained() write them on a CPU.
 *
 * Weights are in one file, without double quantization: its text with an offset, which is a mean of all weights, has a
 * length that only reading them all tells.
 *
 * Source: transformers, integrations/bitsandbytes.py and quantizers/quantizer_bnb_*.py; bitsandbytes, functional.py
 * (QuantState.as_dict()) and nn/modules.py. */
#pragma once

#include "base/buffer.h"
#include "formats/artifact.h"
#include "models/huggingface/hf_model.h"

struct bnb_type {
    const char *name;    /* of its directory: "nf4" */
    const float *levels; /* of the codes of 4 bits (quant/bitsandbytes.h); NULL: 8 bits */
};

extern const struct bnb_type bnb_types[]; /* up to a NULL name */

/* A model before it is quantized: the tensors under the names of its class, and its configuration. */
struct bnb_model;

/* Returns the model, which bnb_model_free() frees. Reads config.json; fails if it is missing or invalid, or names no
 * dtype for a model without weights in floating point. The other model must outlive it. */
struct bnb_model *bnb_model_new(const struct hf_model *model, struct error *error);
void bnb_model_free(struct bnb_model *model);

/* Makes the artifact of model.safetensors, with new tensors in `arena`; the caller frees it with artifact_free().
 * Fails, with the reason, if a weight cannot be quantized. */
bool bnb_artifact(const struct bnb_model *model, const struct bnb_type *type, struct arena *arena,
                  struct artifact *ret_artifact, struct error *error);

/* Appends the text of config.json. */
bool bnb_write_config(const struct bnb_model *model, const struct bnb_type *type, struct buffer *out,
                      struct error *error);

/* Appends the text of generation_config.json; fails if the source's is invalid. */
bool bnb_write_generation_config(const struct bnb_model *model, struct buffer *out, struct error *error);
