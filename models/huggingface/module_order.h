/* In which order the classes of transformers hold their parameters: the order of state_dict(), which decides what
 * save_pretrained() puts into which shard. Source: the modeling files of transformers. */
#pragma once

#include "formats/tensor_set.h"

/* Places in the set, in that order, in the arena. `model_type` is that of config.json, and may be NULL. Parameters that
 * are not known come after their siblings, in the order of the set. */
const size_t *module_order(const struct tensor_set *set, const char *model_type, struct arena *arena);
