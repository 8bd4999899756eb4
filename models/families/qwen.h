/* What the Qwen families share. */
#pragma once

#include "models/families/family.h"

extern const struct relation_row qwen_moe_tensors[];
extern const struct relation_row qwen3_tensors[];
