/* Values of modules with certain names that replace the common value: rank_pattern and alpha_pattern of
 * adapter_config.json,
 * {"q_proj": 16, "layers.0.*": 8}.
 *
 * A name is a regular expression of what a module is called, or of the end of that after a dot; the first that matches
 * counts. Source: get_pattern_key() of peft, utils/other.py. Most are plain names, of which any number may be
 * there; for all others a search is limited, and one that goes beyond that is an error. */
#pragma once

#include "base/error.h"
#include "formats/json.h"

struct module_patterns;

/* Those of an object's member `key`, which outlives them, to be asked about that many modules; none where there is no
 * such member. NULL where one is not an expression, or where there are too many. */
struct module_patterns *module_patterns_read(const struct json *config, const char *key, size_t n_modules,
                                             struct error *error);
void module_patterns_free(struct module_patterns *patterns); /* NULL is allowed */

/* Finds what a module of that name has; *ret_value is NULL where no pattern says anything of it. */
bool module_patterns_find(const struct module_patterns *patterns, const char *module, size_t length,
                          const struct json **ret_value, struct error *error);
