/* Models that are a GGUF already, in one file or sharded: their keys and tensors stay as they are. */
#pragma once

#include "models/convert/model.h"

/* Fills in keys and tensors. */
bool gguf_model_take(struct gguf_model *model, struct error *error);

/* Returns, like split_ends(), the ends of the shards of an artifact that is sharded as the source, up to the last shard
 * with tensors. The artifact must have its tensors in the model's order. With llama-gguf-split
 * --no-tensor-first-split, the first shard has none. */
size_t *gguf_source_ends(const struct checkpoint *checkpoint, const struct artifact *artifact, size_t *ret_n_shards);

/* Makes the artifact of the model in one file. For a sharded source it is the output of `llama-gguf-split --merge`: the
 * keys of the first shard, split.count as 0 at their end, and trailing dimensions of 1 dropped. Source:
 * tools/gguf-split/gguf-split.cpp of llama.cpp. */
void gguf_whole_artifact(const struct gguf_model *model, struct artifact *ret_artifact);
