/* Modules that llmcompressor leaves as they are: patterns, each the whole name of a module, or "re:" and a regular
 * expression that the name must match from its start on.
 *
 * Source: compressed-tensors, utils/match.py, match_name(). */
#pragma once

#include "base/arena.h"
#include "base/error.h"

struct ct_ignored;

/* Compiles a list of patterns that a NULL ends, in `arena`. Returns NULL, with the reason, if a pattern is invalid. */
const struct ct_ignored *ct_ignored_new(struct arena *arena, const char *const *patterns, struct error *error);

/* Reports whether a pattern matches a module's name. */
bool ct_is_ignored(const struct ct_ignored *ignored, const char *module, size_t length);

/* Fails if a pattern is invalid, or has blanks, quotation marks, commas or other than printable ASCII characters, which
 * recipe.yaml would spell otherwise. */
bool ct_ignored_check(const char *pattern, struct error *error);
