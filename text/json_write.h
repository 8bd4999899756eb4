/* Writing JSON as Python's json.dump(indent=2) and serde_json's pretty printer do, which agree: a line for each member,
 * two spaces for each level, empty brackets together, no newline at the end. Or compact, for our own files: no spaces,
 * and line breaks only on request.
 *
 * yyjson's writer cannot write these bytes exactly: its indentation and its spelling of numbers differ.
 *
 * A writer that is zero except for its buffer and letters begins a value. Members of an object are put with a
 * NUL-terminated key, elements of an array with NULL. For a key of any bytes, call json_put_key() first and pass
 * NULL. */
#pragma once

#include "base/buffer.h"
#include "text/json.h"

#include <stdbool.h>

/* Nesting levels: room for a document (JSON_MAX_DEPTH) in a member of another one. */
enum { JSON_WRITER_DEPTH = 256 };

struct json_writer {
    struct buffer *out;
    enum json_letters letters;
    bool compact, break_line, has_key;
    unsigned indent; /* levels of nesting around the whole value */
    unsigned width;  /* of a level, in spaces; 0: two */
    unsigned depth;
    unsigned char levels[JSON_WRITER_DEPTH];
};

void json_begin_object(struct json_writer *writer, const char *key);
void json_begin_array(struct json_writer *writer, const char *key);
void json_end(struct json_writer *writer); /* closes the innermost object or array */

/* Puts the key of the next member. */
void json_put_key(struct json_writer *writer, const char *key, size_t length);

/* Starts a line before the next member or element of a compact value. */
void json_break_line(struct json_writer *writer);

/* Keeps the contents of the innermost brackets of an indented value on their line, as json.dump() writes without
 * indent. */
void json_keep_line(struct json_writer *writer);

/* A place to return to: json_take_back() removes everything put since then, open brackets included. */
struct json_mark {
    size_t length;
    unsigned depth;
    unsigned char level;
    bool has_key;
};
struct json_mark json_mark(const struct json_writer *writer);
void json_take_back(struct json_writer *writer, struct json_mark mark);

void json_put_text(struct json_writer *writer, const char *key, const char *text); /* NULL: null */
void json_put_text_n(struct json_writer *writer, const char *key, const char *text, size_t length);
void json_put_number(struct json_writer *writer, const char *key, uint64_t number);
void json_put_i64(struct json_writer *writer, const char *key, int64_t number);
void json_put_bool(struct json_writer *writer, const char *key, bool value);
void json_put_null(struct json_writer *writer, const char *key);

/* Puts a number with `digits` significant digits; null if it is not finite. */
void json_put_f64(struct json_writer *writer, const char *key, double value, int digits);

/* Puts a parsed value. Calls `edit`, unless it is NULL, for each member of each object in it: true means that the call
 * has put a replacement, or nothing, in its place. `depth` is 1 in the outermost object or array, and one more in each
 * within. */
typedef bool json_edit(void *context, struct json_writer *writer, const struct json_member *member, unsigned depth);
void json_put_edited(struct json_writer *writer, const struct json *value, json_edit *edit, void *context);

/* Puts a parsed value as Python's json.dump(sort_keys=True) does: members of objects by key, and numbers as Python
 * prints them. The members of `more`, an object or NULL, replace or join those of the outermost object. */
void json_put_sorted(struct json_writer *writer, const struct json *value, const struct json *more);

/* Puts an object as mlx-lm does: like json_put_sorted(), but objects within it keep the order of their members, and
 * numbers that are not finite become {"__float__": "Infinity"}. Leaves out the members that `removed` names, up to a
 * NULL. */
void json_put_by_key(struct json_writer *writer, const struct json *value, const struct json *more,
                     const char *const *removed);

/* Puts members or elements as `template` spells them: JSON with ' as the quotation mark, in which a value may be
 *     %s  a text, or NULL: null    %t  a text and its length (size_t)    %u  a uint64_t
 *     %b  true or false            %r  a value that is spelled already
 * A newline is json_break_line(). Brackets may stay open, for loops to go on in them, and the template may close
 * brackets that were open. A template is a constant of the program: it is not checked. */
void json_put_template(struct json_writer *writer, const char *template, ...);

/* Puts a value that is JSON text already. */
void json_put_raw(struct json_writer *writer, const char *key, const char *text);

/* Puts the shortest decimal that reads as the same F32, as Python prints a float: 1e-05, 0.22, 10000.0. */
void json_put_f32(struct json_writer *writer, const char *key, float value);

/* Write the text of an F32 or F64 as json_put_f32() spells it; return `out`. */
enum { JSON_FLOAT_TEXT = 40 };
const char *json_f32_text(float value, char out[JSON_FLOAT_TEXT]);
const char *json_f64_text(double value, char out[JSON_FLOAT_TEXT]);
