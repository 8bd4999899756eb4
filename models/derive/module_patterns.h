/* Values for modules by name, which replace the common value: rank_pattern and alpha_pattern of adapter_config.json,
 * {"q_proj": 16, "layers.0.*": 8}.
 *
 * A pattern is a regular expression that matches a module's name, or its end after a dot; the first match counts.
 * Source: get_pattern_key() of peft, utils/other.py. Most patterns are plain names, whose number has no limit; the
 * number, the length and the search steps of all others are limited, and exceeding a limit is an error. */
#pragma once

#include "base/error.h"
#include "text/json.h"

struct module_patterns;

/* Reads the patterns of the member `key` of `config`, which must outlive the result, for lookups of `n_modules`
 * modules; a missing member means no patterns. Returns NULL if one is no regular expression, or there are too many. */
struct module_patterns *module_patterns_read(const struct json *config, const char *key, size_t n_modules,
                                             struct error *error);
void module_patterns_free(struct module_patterns *patterns); /* NULL is allowed */

/* Sets *ret_value to the value for a module of that name; NULL: no pattern matches. Fails if a match takes too long. */
bool module_patterns_find(const struct module_patterns *patterns, const char *module, size_t length,
                          const struct json **ret_value, struct error *error);
