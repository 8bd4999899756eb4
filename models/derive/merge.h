/* Adapters merged into a base model: each weight W becomes W + scale (alpha / r) B A, computed in F32 for just the rows
 * that are read, and rounded once to the dtype that the weight has, or had before it was packed. A packed base is
 * dequantized first (models/derive/plain.c); for a GGUF see models/derive/merging.h.
 *
 * As in peft's merge_and_unload(), rank_pattern, alpha_pattern and rsLoRA give each weight's scale, embeddings and
 * fan_in_fan_out transpose the product, target_parameters adapt stacked experts, and modules_to_save and other whole
 * tensors replace the base's. If an embedding was trained to stay tied to the output (ensure_weight_tying), its product
 * is added once; peft adds it twice to the one tensor. DoRA gives the sum new norms; those of columns (embeddings,
 * weights stored transposed) are found by the first read of the weight, which reads all of it. Adapters whose training
 * began with a change of the base are refused: their two matrices do not determine the result. Biases of B, and DoRA,
 * are refused for a GGUF. */
#pragma once

#include "formats/checkpoint.h"

struct lora_request {
    const char *path;
    double scale; /* multiplies the adapter's own scale */
};

struct lora_requests {
    const struct lora_request *items;
    size_t count;
};

/* Parses "PATH" or "PATH:SCALE"; the path is made in the arena. */
bool lora_request_parse(const char *text, struct arena *arena, struct lora_request *ret_request, struct error *error);

/* Reports whether there are adapters, and the checkpoint's weights have Hugging Face's names and shapes: not for a
 * GGUF, an adapter, or a source without weights. */
bool lora_adapts(const struct checkpoint *checkpoint, const struct lora_requests *requests);
