/* What configuration classes of transformers refuse. The converter then reads config.json without any class.
 *
 * Source: rope_config_validation() and layer_type_validation() of transformers 4.57.6, the classes that call them, and
 * to_dict() of PretrainedConfig. */
#pragma once

#include "models/config/config_class.h"
#include "text/json.h"

/* Reports whether to_dict() shows the object: it fails for a quantization_config of null. */
bool config_is_shown(const struct json *config);

/* Reports whether the class takes the object: rope_scaling has the keys that its kind needs, and layer_types has known
 * names, one for each layer. */
bool config_class_takes(const struct config_class *class, const struct json *config);
