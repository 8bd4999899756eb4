/* Adapters merged into a base that is a GGUF (models/derive/merge.h).
 *
 * Adapters name weights as Hugging Face does: the names come from the family's relations read backwards. What is to be
 * added to a weight goes there by the same relations, as two matrices, and is added to the values of the GGUF's own
 * tensor, in its own layout. What is in blocks there is F32 then; all others keep their dtype. */
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
