/* Shared by Kimi-Linear and Kimi K3. */
#pragma once

#include "models/families/shared.h"

/* Reports whether a model with Kimi-Linear's name is one, and not the text model of K3. */
bool kimi_linear_alone(const struct hparams *hparams);

/* attention.head_count_kv: 1 in layers of latent attention, 0 in others. */
bool kimi_linear_emit_kv_heads(struct model_builder *builder, struct error *error);
