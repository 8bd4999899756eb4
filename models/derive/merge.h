/* Adapters merged into a base model: each weight W becomes W + scale (alpha / r) B A, computed in F32 for just the rows
 * that are read, and rounded once to the dtype that it is stored in, or was before it was packed. A packed base is
 * shown plain first, all of it (models/derive/plain.c); for a GGUF see models/derive/merge_gguf.h.
 *
 * As peft's merge_and_unload() has it: rank_pattern, alpha_pattern and rsLoRA say the scale of each weight, embeddings
 * and fan_in_fan_out turn the product around, target_parameters adapt experts that are stacked, modules_to_save and
 * other whole tensors take the place of the base's. An embedding that was trained to remain the output as well
 * (ensure_weight_tying) has its product added once, where peft adds it twice to the one tensor.
 * What cannot be told from two matrices - DoRA, adapters whose training began with a change of the base - is refused.
 */
#pragma once

#include "formats/checkpoint.h"

struct lora_request {
    const char *path;
    double scale; /* times what the adapter says itself */
};

struct lora_requests {
    const struct lora_request *items;
    size_t count;
};

/* "PATH" or "PATH:SCALE"; the path is made in the arena. */
bool lora_request_parse(const char *text, struct arena *arena, struct lora_request *ret_request, struct error *error);

/* Reports whether adapters are merged into tensors with Hugging Face's names and layout. A GGUF has other names, and
 * nothing is merged into an adapter or into a source without weights. */
bool lora_adapts(const struct checkpoint *checkpoint, const struct lora_requests *requests);
