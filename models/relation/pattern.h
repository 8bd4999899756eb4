/* Patterns of tensor names: "model.layers.{}.mlp.experts.{expert}.w1".
 *
 * {} and {name} stand for a number as Python writes it: no sign, no leading zero, at most nine digits. A '*' at the end
 * stands for any rest. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum { PATTERN_NUMBERS = 3 };

/* Reports whether `name` is made by `pattern`, and with which numbers; those that the pattern does not have are
 * UINT64_MAX. */
bool pattern_match(const char *pattern, const char *name, size_t name_length, uint64_t numbers[PATTERN_NUMBERS]);

/* Returns `pattern` with its {} replaced, and `suffix` after it. */
char *pattern_fill(struct arena *arena, const char *pattern, const uint64_t numbers[PATTERN_NUMBERS],
                   const char *suffix);

/* Return the number of placeholders of a pattern, and the name of one, of *ret_length bytes: 0 for {}. The name is NULL
 * if there is no such placeholder. */
unsigned pattern_count(const char *pattern);
const char *pattern_number_name(const char *pattern, unsigned index, size_t *ret_length);

/* Writes the form that names share with the patterns that make them: every run of digits and every placeholder becomes
 * '#'. Returns false if there is no room; then no pattern makes the name. */
bool pattern_skeleton(const char *name, size_t length, char *out, size_t capacity);
