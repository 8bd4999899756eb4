/* Models that are a GGUF already, in one file or in splits: their keys and tensors do not change. */
#pragma once

#include "models/convert/model.h"

/* Fills in keys and tensors. Fails if a tensor has byte-swapped blocks, which GGUF cannot hold. */
bool gguf_model_take(struct gguf_model *model, struct error *error);

/* Returns, like split_ends(), the ends of the splits of an artifact that is split like the source, up to the last split
 * with tensors. The artifact must have its tensors in the model's order. The first split of a source made with
 * llama-gguf-split --no-tensor-first-split has none. The caller frees the result. */
size_t *gguf_source_ends(const struct checkpoint *checkpoint, const struct artifact *artifact, size_t *ret_n_shards);

/* Makes the artifact of the model in one file, with the edits. For a source in splits it is the output of
 * `llama-gguf-split --merge`: the keys of the first split, split.count as 0 at their end, and trailing dimensions of 1
 * dropped. Source: tools/gguf-split/gguf-split.cpp of llama.cpp. */
void gguf_whole_artifact(const struct gguf_edition *edition, struct artifact *ret_artifact);
