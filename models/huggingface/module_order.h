/* The order of parameters in the classes of transformers: the order of state_dict(), by which save_pretrained() fills
 * shards. Source: the modeling files of transformers. */
#pragma once

#include "formats/tensor_set.h"

/* Returns the indices of the set's tensors in that order, in the arena. `model_type` is config.json's, and may be NULL.
 * Unknown parameters come after their siblings, in the order of the set. */
const size_t *module_order(const struct tensor_set *set, const char *model_type, struct arena *arena);
