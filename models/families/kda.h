/* Kimi delta attention (KDA), as in most layers of models with latent attention. */
#pragma once

#include "models/families/shared.h"

/* Its tensors below model.layers.{}.self_attn or .attention: all but A_log, the gates and the output. They need the
 * dimension "flat_convolution", a flag for convolutions stored as matrices. */
extern const struct relation_row kda_self_attention_tensors[], kda_attention_tensors[];

/* Sets that flag from the checkpoint: for family.adjust. */
void kda_look(struct model_builder *builder);
