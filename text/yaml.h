/* YAML, as PyYAML's safe_load reads it.
 *
 * libyaml parses; plain scalars (`no`, 1.0, 2024-01-31, ~) get their types from YAML 1.1. Every scalar also keeps its
 * text. An alias is not expanded but points at the value it names, so no document grows, and cycles are possible: code
 * that walks the values must bound its depth. Values live in the arena of the read.
 *
 * Time and memory are linear in the text: some 0.5 microseconds and at most 200 bytes for each byte. Text that would
 * take libyaml longer (deep nesting, many anchors, many directives) is refused. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdint.h>

enum yaml_type { YAML_NULL, YAML_BOOL, YAML_INTEGER, YAML_FLOAT, YAML_DATE, YAML_STRING, YAML_LIST, YAML_MAPPING };

struct yaml_value {
    enum yaml_type type;
    uint32_t line;    /* the line in which it begins */
    const char *text; /* a scalar's text, after quotes and escapes are resolved */
    int64_t integer;  /* an integer's value, clamped to 2^63 - 1 either way; a bool's 0 or 1 */
    double real;      /* a float's value */
    struct yaml_pair {
        const struct yaml_value *key, *value; /* the key is NULL in a list */
    } * pairs;
    size_t n_pairs;
};

struct yaml_text {
    const char *text;
    size_t length, first_line; /* errors and values count lines from first_line */
};

/* Reads the first document; *ret_root is NULL if the text has none, and *ret_more tells whether others follow. Fails if
 * the text is not YAML, or exceeds the limits. */
bool yaml_read(struct arena *arena, const struct yaml_text *text, const struct yaml_value **ret_root, bool *ret_more,
               struct error *error);

/* Returns the value of the last such key, or else of a mapping merged in with "<<"; NULL: none, or no `mapping`. */
const struct yaml_value *yaml_get(const struct yaml_value *mapping, const char *key);

/* Reports whether Python treats the value as false: null, false, zero, or empty. */
bool yaml_is_false(const struct yaml_value *value);
