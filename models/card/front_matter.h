/* The YAML between "---" lines at the top of a model's README.md.
 *
 * libyaml parses; plain scalars (`no`, 1.0, 2024-01-31, ~) get their types from YAML 1.1, as in PyYAML's safe_load.
 * Every scalar also keeps its text. An alias is not expanded but points at the value it names, so no document grows,
 * and cycles are possible: code that walks the values must bound its depth. Values live in the arena of the read.
 *
 * Time and memory are linear in the text: some 0.5 microseconds and at most 200 bytes for each byte. Text that would
 * take libyaml longer (deep nesting, many anchors, many directives) is refused. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdint.h>

enum card_type { CARD_NULL, CARD_BOOL, CARD_INTEGER, CARD_FLOAT, CARD_DATE, CARD_STRING, CARD_LIST, CARD_MAPPING };

struct card_value {
    enum card_type type;
    const char *text; /* a scalar's text, after quotes and escapes are resolved */
    int64_t integer;  /* an integer's value, clamped to 2^63 - 1 either way; a bool's 0 or 1 */
    double real;      /* a float's value */
    struct card_pair {
        const struct card_value *key, *value; /* the key is NULL in a list */
    } * pairs;
    size_t n_pairs;
};

/* Sets *ret_card to the mapping, or to NULL if `readme` has no front matter or it is not a mapping. Fails if the front
 * matter is not YAML, or exceeds the limits. */
bool front_matter_read(struct arena *arena, const char *readme, size_t length, const struct card_value **ret_card,
                       struct error *error);

/* Returns the value of the last such key, or else of a mapping merged in with "<<"; NULL: none, or no `mapping`. */
const struct card_value *card_get(const struct card_value *mapping, const char *key);

/* Reports whether Python treats the value as false: null, false, zero, or empty. */
bool card_is_false(const struct card_value *value);
