/* The mixer of Mamba 2, as hybrid models have it in some of their layers.
 *
 * The fact "group" is the number of groups that ssm_norm is divided into. */
#pragma once

#include "models/families/family.h"

extern const struct relation_row mamba2_layer_tensors[];    /* below model.layers.{}.mamba */
extern const struct relation_row mamba2_backbone_tensors[]; /* below backbone.layers.{}.mixer */

/* The fact "group", from the first of these hyperparameters. */
void mamba2_add_groups(struct facts *facts, const struct hparams *hparams, const char *keys);

/* Makes vocab_size a multiple: the embedding has been padded. */
bool mamba2_pad_vocabulary(struct synthesis *synthesis, uint64_t multiple, struct error *error);

enum { MAMBA2_CONTEXT = 1 << 20 }; /* context_length of models that have none */
