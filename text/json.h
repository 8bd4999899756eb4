/* JSON, read strictly.
 *
 * The parser is yyjson. This adapter keeps its array of values, 16 bytes each, with numbers as they were spelled, and
 * adds rules that yyjson lacks: no duplicate keys in an object (compared after unescaping), nesting of at most
 * JSON_MAX_DEPTH (serde_json's limit), at most JSON_MAX_VALUES values (keys not counted), at most 2 GiB of text. yyjson
 * refuses invalid UTF-8 and lone surrogates. Nothing recurses. Objects keep the order of the file. A document owns
 * everything in it. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    JSON_MAX_DEPTH = 127,
    JSON_MAX_VALUES = 16 * 1024 * 1024,
    JSON_LINED = 1024 * 1024, /* bytes of the longest text whose document still knows its lines */
};

enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json; /* a value */
struct json_document;

/* A member of an object; json_next_member() fills it. The key is NUL-terminated, and may hold NULs itself. */
struct json_member {
    const char *key;
    size_t key_length;
    const struct json *value;
};

/* Parses a document of `length` bytes. The error names the line, or the limit that the text exceeds; the caller puts
 * the file's name before it. */
struct json_document *json_parse(const char *text, size_t length, struct error *error);

/* Like json_parse(), for JSON that Python wrote: Infinity, which configurations of Mamba contain, is a number too large
 * for a double, and a whole number may be spelled as a float: 2048.0. */
struct json_document *json_parse_python(const char *text, size_t length, struct error *error);

/* Writes the whole text, of `length` bytes, to `to`. */
typedef bool json_read_text(void *context, char *to, size_t length, struct error *error);

/* Like json_parse_python(), for a text that is not in memory yet. A long text is parsed in place, without a copy, and
 * read again if it is invalid, for the line of the error. */
struct json_document *json_read_python(json_read_text *read, void *context, size_t length, struct error *error);

/* Writes `length` bytes of the text, from `offset` on, to `to`. */
typedef bool json_read_part(void *context, size_t offset, char *to, size_t length, struct error *error);

/* Reads an object, parses it like json_parse(), and hands over its members one by one, in the order of the text. A
 * member lives during the call. A call that returns false, with an error, ends the function; it may be made twice, and
 * the error is another one if the text is invalid elsewhere. Keys of the object itself may appear twice. A long text is
 * read in parts, and again if it is unusual or invalid. `context` is that of both calls. */
typedef bool json_take_member(void *context, const struct json_member *member, struct error *error);
bool json_read_members(json_read_part *read, void *context, size_t length, json_take_member *take, struct error *error);

void json_free(struct json_document *document); /* NULL is allowed */
const struct json *json_root(const struct json_document *document);

/* The functions below take NULL for a missing value, and treat it like a value of an unsuitable type. */

enum json_type json_type(const struct json *value);          /* JSON_NULL for NULL */
bool json_is(const struct json *value, enum json_type type); /* false for NULL, whatever the type */

/* Returns the line in which a value begins, from 1 on; 0 for NULL, and in a text longer than JSON_LINED. Takes time
 * linear in the text before the value: for errors. */
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
const struct json *json_get_n(const struct json *object, const char *key, size_t key_length);
static inline const struct json *json_get(const struct json *object, const char *key)
{
    return json_get_n(object, key, strlen(key));
}

/* Returns the text of a string, NUL-terminated, or NULL. The text may contain NULs: *ret_length, if not NULL, is its
 * length in bytes, set only if there is a text. */
const char *json_string(const struct json *value, size_t *ret_length);

struct json_text {
    const char *bytes; /* NULL: not a string */
    size_t length;
};

/* Reads the first two elements of an array, as a merge of a tokenizer has them. A value of another kind has none. */
void json_string_pair(const struct json *array, struct json_text ret_pair[2]);
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
