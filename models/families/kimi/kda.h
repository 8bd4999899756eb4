/* Kimi delta attention (KDA), as in most layers of models with latent attention. */
#pragma once

#include "models/families/shared.h"

/* Tensors of KDA below model.layers.{}.self_attn or .attention, except A_log, the gates and the output. They need the
 * flag "flat_convolution", for convolutions stored as matrices. */
extern const struct relation_row kda_self_attention_tensors[], kda_attention_tensors[];

/* Sets that flag by the checkpoint's tensors: for family.adjust. */
void kda_look(struct model_builder *builder);
