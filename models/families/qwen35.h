/* Shared by Qwen 3.5 with and without experts. */
#pragma once

#include "models/families/gated_delta.h"
#include "models/families/qwen.h"

extern const struct key_row qwen35_keys[]; /* after gated_delta_keys */

#define QWEN35_CONFIG_ROWS                                                                                             \
    {"hidden_act", FROM_TEXT, .text = "'silu'"},                                                                       \
        {"linear_value_head_dim", FROM_QUOTIENT, "ssm.inner_size", "ssm.time_step_rank"},                              \
    {                                                                                                                  \
        "partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"                       \
    }
