/* Parts of a model with layers of multi-token prediction (MTP), which predict further tokens: the converter writes them
 * alone (--mtp), with the tensors that they share with the model, or leaves them out (--no-mtp).
 *
 * The layers come after the others, under the names that the family's rows use; the dimension "nextn" is their number.
 * In the part of these layers alone, the dimension "only_mtp" is 1. */
#pragma once

#include "models/family/model_builder.h"

/* Returns the number of the layer in a tensor's name, "model.layers.{i}.attn"; UINT64_MAX: none. */
uint64_t part_layer_of(const char *name);

/* Reports whether the model's part has the tensor with that name, as family_tensor_name() returns it. */
bool part_has(const struct model_builder *builder, const char *name);

/* Reports whether the converter of these builds writes parts of the class. */
bool part_is_offered(const struct family *family, const struct family_name *hf, const struct references *references);
