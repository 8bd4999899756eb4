/* Shared by the Qwen families. */
#pragma once

#include "models/families/shared.h"

extern const struct relation_row qwen_moe_tensors[];

/* And those of the text halves of the models that see: of a text, the three positions of their rope are one. */
extern const struct config_form qwen2_half_forms[], qwen3_half_forms[], qwen3moe_half_forms[];
