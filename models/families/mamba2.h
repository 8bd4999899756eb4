/* The mixer of Mamba 2, as hybrid models have it in some of their layers.
 *
 * Its rows need the facts "state_group", the number of groups that share a state, and ssm_norm is divided into,
 * "state" and "mamba_head". */
#pragma once

#include "models/families/family.h"

extern const struct relation_row mamba2_layer_tensors[];    /* below model.layers.{}.mamba */
extern const struct relation_row mamba2_backbone_tensors[]; /* below backbone.layers.{}.mixer */

/* Those facts; each from the first of these hyperparameters that is there, and 0 without one. */
struct mamba2_sizes {
    const char *groups, *state, *heads;
};
void mamba2_add_facts(struct facts *facts, const struct hparams *hparams, const struct mamba2_sizes *sizes);

/* Makes vocab_size a multiple: the embedding has been padded. */
bool mamba2_pad_vocabulary(struct draft *draft, uint64_t multiple, struct error *error);

enum { MAMBA2_CONTEXT = 1 << 20 }; /* context_length of models that have none */
