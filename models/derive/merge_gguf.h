/* Adapters merged into a base that is a GGUF (models/derive/merge.h).
 *
 * Adapters use Hugging Face's names for weights, which the family's relations give when read backwards. The same
 * relations turn an adapter's two matrices into those for the GGUF's tensor, whose values get their product added.
 * Merged tensors of block types become F32; all others keep their dtype. */
#pragma once

#include "formats/checkpoint.h"
#include "quant/view.h"

struct gguf_merging;

/* Lives as long as `merged`, which is derived from the base. NULL where its names cannot be told. */
struct gguf_merging *gguf_merging_new(struct checkpoint *merged, const struct checkpoint *base, struct error *error);

/* The base's tensors as Hugging Face calls and shapes them. */
const struct tensor_set *gguf_merging_names(const struct gguf_merging *merging);

/* Notes what is done to one of those: scale times left right is added, or the whole is F32 of another. Each is noted
 * once before the next gguf_merging_apply(), which does it: replaces first, adds then. */
void gguf_merging_add(struct gguf_merging *merging, const char *name, float scale, const struct view *left,
                      const struct view *right);
void gguf_merging_replace(struct gguf_merging *merging, const char *name, const struct view *view);
bool gguf_merging_apply(struct gguf_merging *merging, struct error *error);

/* Gives the merged checkpoint what was made. */
void gguf_merging_finish(const struct gguf_merging *merging);
