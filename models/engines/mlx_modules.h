/* The modules of mlx-lm that have a class for a model: which one loads a configuration.
 *
 * Source: mlx-lm, mlx_lm/models/, and _get_classes() in utils.py. scripts/tables writes the names. */
#pragma once

/* Returns the name of the module for a "model_type" and the first of "architectures", or NULL if mlx-lm has none. Both
 * may be NULL. */
const char *mlx_module_of(const char *model_type, const char *class_name);
