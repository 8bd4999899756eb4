/* Shared by DeepSeek V2 and related families: multi-head latent attention (MLA), which computes keys and values from
 * one short vector. */
#pragma once

#include "models/families/shared.h"

extern const struct relation_row mla_tensors[];
extern const struct key_row mla_first_keys[], mla_keys[]; /* before base_keys, and after them */

extern const struct dimension_row mla_dimensions[]; /* nope, value: the sizes of a head's parts */

/* Computes leading_dense_block_count: without first_k_dense_replace, all layers are dense in models without experts,
 * and none in others. */
bool deepseek_dense_layers(const struct model_builder *builder, double *ret_value, struct error *error);

/* family.defaults: the converter's defaults for values that config.json lacks. */
#define MLA_DEFAULTS "{'rms_norm_eps': 1e-06, 'kv_lora_rank': 512}"

/* Lines of config.json for the attention of mla_tensors. */
extern const struct config_row deepseek_config_rows[];
