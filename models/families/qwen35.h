/* What dense Qwen 3.5 and that with experts share. */
#pragma once

#include "models/families/gated_delta.h"
#include "models/families/qwen.h"

extern const struct key_row qwen35_keys[]; /* after gated_delta_keys */
