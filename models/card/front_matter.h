/* The YAML between "---" lines at the top of a model's README.md.
 *
 * libyaml parses; what a plain scalar is (`no`, 1.0, 2024-01-31, ~) follows YAML 1.1 as PyYAML's safe_load resolves it.
 * Every scalar keeps its source text besides. Aliases are not expanded but point at what they name, so that no document
 * grows, and cycles are possible: a walker bounds the depth. Values live in the arena they were read into.
 *
 * Time and memory are linear in the text: some 0.5 microseconds and at most 200 bytes for each byte. Where libyaml
 * would take longer (deep nesting, many anchors, many directives) the text is refused. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdint.h>

enum card_type { CARD_NULL, CARD_BOOL, CARD_INTEGER, CARD_FLOAT, CARD_DATE, CARD_STRING, CARD_LIST, CARD_MAPPING };

struct card_value {
    enum card_type type;
    const char *text; /* of a scalar, as it was written */
    int64_t integer;  /* of an integer, at most 2^63 - 1 either way; of a bool 0 or 1 */
    double real;      /* of a float */
    struct card_pair {
        const struct card_value *key, *value; /* the key is NULL in a list */
    } * pairs;
    size_t n_pairs;
};

/* Sets *ret_card to the mapping, or to NULL where `readme` begins with none. Fails where the front matter is not YAML,
 * or more than is read. */
bool front_matter_read(struct arena *arena, const char *readme, size_t length, const struct card_value **ret_card,
                       struct error *error);

/* The value of the last such key, those merged in with "<<" last of all; NULL where there is none. */
const struct card_value *card_get(const struct card_value *mapping, const char *key);

/* Reports whether Python treats the value as false: null, false, zero, or empty. */
bool card_is_false(const struct card_value *value);
