/* What the Qwen families share. */
#pragma once

#include "formats/gguf/arch/arch.h"

extern const struct tensor_row qwen_moe_tensors[];
extern const struct tensor_row qwen3_tensors[];
