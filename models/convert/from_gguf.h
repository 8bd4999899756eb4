/* Models that are a GGUF already, in one file or in parts: their keys and tensors as they are. */
#pragma once

#include "models/convert/model.h"

/* Fills in keys and tensors. */
bool gguf_model_take(struct gguf_model *model, struct error *error);

/* Where the parts of an artifact end that is split as the source is, up to the last that has tensors: as split_ends().
 * The artifact has the tensors in the model's order. Of llama-gguf-split --no-tensor-first-split the first part has
 * none. */
size_t *gguf_source_ends(const struct checkpoint *checkpoint, const struct artifact *artifact, size_t *ret_n_parts);

/* The model in one file; of a split one what `llama-gguf-split --merge` writes: the keys of the first part, split.count
 * as 0 at their end, and trailing dimensions of 1 dropped. Source: tools/gguf-split/gguf-split.cpp of llama.cpp. */
void gguf_whole_artifact(const struct gguf_model *model, struct artifact *ret_artifact);
