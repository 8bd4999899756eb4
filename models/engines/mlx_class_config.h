/* What classes of mlx-lm change in config.json while they read it: the tool writes the changed one. */
#pragma once

#include "base/buffer.h"
#include "models/engines/mlx_families.h"

/* Appends the JSON text of a configuration after a family's class has read it. */
void mlx_class_config(const struct mlx_family *family, const struct json *config, struct buffer *out);
