/* Shared by Kimi-Linear and Kimi K3. */
#pragma once

#include "models/families/shared.h"

/* Reports whether a model with Kimi-Linear's name is one, and not the text model of K3. */
bool kimi_linear_alone(const struct hparams *hparams);

/* attention.head_count_kv: 1 in layers of latent attention, 0 in others. */
bool kimi_linear_emit_kv_heads(struct model_builder *builder, struct error *error);

/* attention.key_length of the latent vector, and key_length_mla of a head. */
bool kimi_linear_key_length(const struct model_builder *builder, double *ret_value, struct error *error);
bool kimi_linear_mla_key_length(const struct model_builder *builder, double *ret_value, struct error *error);
