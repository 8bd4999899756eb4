/* Kimi delta attention (KDA), as models of latent attention have it in most of their layers. */
#pragma once

#include "models/families/family.h"

/* Its tensors below model.layers.{}.self_attn or .attention: all but A_log, the gates and the output. They need the
 * fact "flat_convolution", that a convolution is stored as a matrix. */
extern const struct relation_row kda_self_attention_tensors[], kda_attention_tensors[];

/* Sets that fact from the checkpoint: for family.adjust. */
void kda_look(struct draft *draft);
