/* Shared by the Qwen families. */
#pragma once

#include "models/families/shared.h"

extern const struct relation_row qwen_moe_tensors[];

/* For the language models of the vision models, whose three rope positions are the same for text. */
extern const struct config_form qwen2_half_forms[], qwen3_half_forms[], qwen3moe_half_forms[];
