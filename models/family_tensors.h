/* The tensors of a GGUF that is made of a checkpoint, by the rows of its family.
 *
 * Order and names follow ModelBase.index_tensors and prepare_tensors of the converter: shard by shard, the names of a
 * shard sorted, experts stacked where the last of them is met. */
#pragma once

#include "models/families/family.h"

/* Adds all tensors of the model: those of the checkpoint in the converter's order, unpacked, without those that belong
 * to other parts of a multimodal model, as the family relates them. Sets model->auto_type, too. Fails where a tensor
 * has no row, or does not fit. */
bool tensors_add(struct draft *draft, struct error *error);

/* The name that the family's rows are about, of one that Hugging Face has: without prefixes of what is around the text
 * model, and as the family renames it. NULL for a tensor that is left out. */
const char *family_tensor_name(const struct family *family, const struct family_name *hf, const struct facts *facts,
                               const char *name, struct arena *arena);

/* Adds tensors that are called as the checkpoint's would be. */
bool tensors_relate(struct draft *draft, const struct tensor_set *set, struct error *error);
