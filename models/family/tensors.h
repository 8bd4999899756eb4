/* The tensors of a GGUF made from a checkpoint, by the rows of its family.
 *
 * Order and names follow ModelBase.index_tensors and prepare_tensors of the converter: shard by shard, the names of a
 * shard sorted, experts stacked at the place of the last one. */
#pragma once

#include "models/family/model_builder.h"

/* Adds all tensors of the model: the checkpoint's in the converter's order, dequantized, as the family relates them,
 * without those of other parts of a multimodal model. Sets model->auto_type and model->packed_file_type, too, and notes
 * packings that the converter refuses. Fails if a tensor has no row, does not fit its row, or has no values. */
bool tensors_add(struct model_builder *builder, struct error *error);

/* Like tensors_add(), for a set with the checkpoint's names, and without tensors_add()'s side effects. */
bool tensors_relate(struct model_builder *builder, const struct tensor_set *set, struct error *error);
