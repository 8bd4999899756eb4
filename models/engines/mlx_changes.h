/* Functions of values that classes of mlx-lm apply to weights while they load them: mlx_family.change. */
#pragma once

#include "models/engines/mlx_families.h"

/* Add 1 to the norms of a layer's ends, of queries and of keys; to all norms. Source: qwen3_next.py, qwen3_5.py;
 * step3p5.py. */
mlx_change mlx_norms_plus_one, mlx_all_norms_plus_one;

/* Multiplies weights by the multipliers of config.json. A multiplier is rounded to the weights' type first. Source:
 * falcon_h1.py. */
mlx_change mlx_falcon_h1_multipliers;
