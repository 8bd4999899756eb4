/* Shared by Qwen 3.5 with and without experts. */
#pragma once

#include "models/families/gated_delta.h"
#include "models/families/qwen.h"

extern const struct key_row qwen35_keys[]; /* after gated_delta_keys */

extern const struct config_row qwen35_config_rows[];
