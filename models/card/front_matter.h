/* The YAML between "---" lines at the top of a model's README.md (text/yaml.h). */
#pragma once

#include "text/yaml.h"

/* Sets *ret_card to the mapping, or to NULL if `readme` has no front matter or it is not a mapping. Fails if the front
 * matter is not YAML, or exceeds the limits. */
bool front_matter_read(struct arena *arena, const char *readme, size_t length, const struct yaml_value **ret_card,
                       struct error *error);
