/* The mixer of Mamba 2, as in some layers of hybrid models.
 *
 * Its rows need the dimensions "state_group", the number of groups that share a state and that divide ssm_norm, "state"
 * and "mamba_head". */
#pragma once

#include "models/families/shared.h"

extern const struct relation_row mamba2_layer_tensors[];    /* below model.layers.{}.mamba */
extern const struct relation_row mamba2_backbone_tensors[]; /* below backbone.layers.{}.mixer */

/* Makes vocab_size a multiple: the embedding has been padded. */
bool mamba2_pad_vocabulary(struct model_builder *builder, uint64_t multiple, struct error *error);

enum { MAMBA2_CONTEXT = 1 << 20 }; /* context_length of models that have none */
