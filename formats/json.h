/* JSON, read strictly.
 *
 * The parser is yajl's; this adapter keeps a whole document as a compact tree, with numbers as they were spelled, and
 * adds rules that yajl lacks: well-formed UTF-8 only, no lone surrogates, no duplicate keys in an object (compared
 * after unescaping), nesting of at most JSON_MAX_DEPTH (serde_json's limit), at most JSON_MAX_VALUES values (40 bytes
 * of memory each, for at least 2 bytes of text), at most 2 GiB of text. Parsing does not recurse. Objects keep the
 * order of the file. A document owns everything in it. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { JSON_MAX_DEPTH = 127, JSON_MAX_VALUES = 16 * 1024 * 1024 };

enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json; /* a value */
struct json_document;

/* A member of an object; json_next_member() fills it. The key is NUL-terminated, and may hold NULs itself. */
struct json_member {
    const char *key;
    size_t key_length;
    const struct json *value;
};

/* Parses a document of `length` bytes. The error names the line, or the offset of bytes that are not UTF-8 or of a lone
 * surrogate, or the limit that the text exceeds; the caller puts the file's name before it. */
struct json_document *json_parse(const char *text, size_t length, struct error *error);

/* Like json_parse(), for JSON that Python wrote: Infinity, which configurations of Mamba contain, is a number too large
 * for a double, and a whole number may be spelled as a float: 2048.0. */
struct json_document *json_parse_python(const char *text, size_t length, struct error *error);

/* Parses an object and hands over its members one by one, in the order of the text: memory is bounded by the longest
 * member. A member lives during the call; a call that returns false, with an error, ends the parse. Keys of the object
 * itself may appear twice. */
typedef bool json_take_member(void *context, const struct json_member *member, struct error *error);
bool json_parse_members(const char *text, size_t length, json_take_member *take, void *context, struct error *error);

void json_free(struct json_document *document); /* NULL is allowed */
const struct json *json_root(const struct json_document *document);

/* The functions below take NULL for a missing value, and treat it like a value of an unsuitable type. */

enum json_type json_type(const struct json *value);          /* JSON_NULL for NULL */
bool json_is(const struct json *value, enum json_type type); /* false for NULL, whatever the type */

/* Returns the line in which a value begins, from 1 on; 0 for NULL. */
unsigned json_line(const struct json *value);

/* Elements of an array. Objects have none, and json_next() of a member's value is NULL. */
size_t json_count(const struct json *array);
const struct json *json_first(const struct json *array);
const struct json *json_next(const struct json *element);
const struct json *json_at(const struct json *array, size_t index); /* walks; not for loops */

/* Members of an object; an array has none. json_next_member() steps to the first member from one that is all zero, and
 * from each to the next; it returns false after the last:
 *     for (struct json_member member = {0}; json_next_member(object, &member);) */
size_t json_count_members(const struct json *object);
bool json_next_member(const struct json *object, struct json_member *member);

/* Return the member's value, or NULL. Large objects have an index. */
const struct json *json_get(const struct json *object, const char *key);
const struct json *json_get_n(const struct json *object, const char *key, size_t key_length);

/* Returns the text of a string, NUL-terminated, or NULL. The text may contain NULs: *ret_length, if not NULL, is its
 * length in bytes, set only if there is a text. */
const char *json_string(const struct json *value, size_t *ret_length);
bool json_string_is(const struct json *value, const char *text);

/* Returns the number as it was spelled, or NULL. */
const char *json_number_text(const struct json *value);
bool json_is_integer(const struct json *value); /* spelled without fraction and exponent */

/* Return false if the value is not a number of that kind, or an integer that does not fit. -0 is not an unsigned
 * number. A number too large for a double is infinite. */
bool json_u64(const struct json *value, uint64_t *ret_value);
bool json_i64(const struct json *value, int64_t *ret_value);
bool json_double(const struct json *value, double *ret_value);

/* Returns the value, or `otherwise` if it is neither true nor false. */
bool json_bool(const struct json *value, bool otherwise);
