/* Shared by Kimi-Linear and Kimi K3. */
#pragma once

#include "models/families/shared.h"

extern const struct relation_row kimi_linear_tensors[];

/* attention.head_count_kv: 1 in layers of latent attention, 0 in others. */
bool kimi_linear_emit_kv_heads(struct model_builder *builder, struct error *error);
