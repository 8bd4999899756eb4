/* Patterns of tensor names: "model.layers.{}.mlp.experts.{expert}.w1".
 *
 * {} and {name} stand for a number as Python writes it: no sign, no leading zero, at most nine digits. A '*' at the end
 * stands for any ending. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum { PATTERN_NUMBERS = 3 };

/* Reports whether `name` matches `pattern`, and with which numbers; numbers that the pattern lacks are UINT64_MAX. */
bool pattern_match(const char *pattern, const char *name, size_t name_length, uint64_t numbers[PATTERN_NUMBERS]);

/* Returns `pattern` with its placeholders replaced by the numbers, in order, and `suffix` appended; in the arena. Cuts
 * a filled pattern of more than 235 bytes. */
char *pattern_fill(struct arena *arena, const char *pattern, const uint64_t numbers[PATTERN_NUMBERS],
                   const char *suffix);

/* Return the number of placeholders of a pattern, and the name of one, of *ret_length bytes: 0 for {}. The name is NULL
 * if there is no such placeholder. */
unsigned pattern_count(const char *pattern);
const char *pattern_number_name(const char *pattern, unsigned index, size_t *ret_length);

/* Writes the form that names share with the patterns they match: every run of digits and every placeholder becomes '#'.
 * Returns false if `out` is too small; then no pattern matches the name. */
bool pattern_skeleton(const char *name, size_t length, char *out, size_t capacity);
