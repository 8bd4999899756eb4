/* Adapters merged into a base that is a GGUF (models/derive/merge.h).
 *
 * Adapters use Hugging Face's names for weights; the family's relations, read backwards, give them. The same relations
 * turn an adapter's two matrices into those for the GGUF's tensor, and their product is added to its values. Merged
 * tensors of block types become F32; all others keep their dtype. */
#pragma once

#include "formats/checkpoint.h"
#include "quant/views/view.h"

struct gguf_merging;

/* Returns a merge that lives as long as `merged`, which is derived from the base; NULL if no names can be derived. */
struct gguf_merging *gguf_merging_new(struct checkpoint *merged, const struct checkpoint *base, struct error *error);

/* Returns the base as transformers has it: its configuration, and its tensors under Hugging Face's names. */
const struct checkpoint *gguf_merging_base(const struct gguf_merging *merging);

/* Returns the base's tensors under Hugging Face's names, in its shapes. */
const struct tensor_set *gguf_merging_names(const struct gguf_merging *merging);

/* Record a change to one of these tensors: add scale left right, or replace all values by an F32 view. The next
 * gguf_merging_apply() first replaces, then adds; it fails if a tensor has two recorded changes of one kind. */
void gguf_merging_add(struct gguf_merging *merging, const char *name, float scale, const struct view *left,
                      const struct view *right);
void gguf_merging_replace(struct gguf_merging *merging, const char *name, const struct view *view);
bool gguf_merging_apply(struct gguf_merging *merging, struct error *error);

/* Reports whether changes were applied, so that the base's tensors under Hugging Face's names are not the merged ones.
 */
bool gguf_merging_is_changed(const struct gguf_merging *merging);

/* Gives the merged checkpoint its tensors. */
void gguf_merging_finish(const struct gguf_merging *merging);
