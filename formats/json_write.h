/* Writing JSON as Python's json.dump(indent=2) and serde_json's pretty printer do, which agree: a member a line, two
 * spaces for each level, nothing between the brackets of what is empty, no newline at the end. Or compact, for files of
 * our own: no spaces, and a new line only where one is asked for.
 *
 * yajl's generator cannot write these: it puts the brackets of what is empty on two lines, has no letters but UTF-8,
 * spells control characters in upper case, and knows no number but one of its own format. Files are compared to the
 * byte.
 *
 * Zero-initialized but for its buffer and letters, a writer begins a value; members of an object have keys, elements of
 * an array NULL. A key of `length` bytes may hold anything; others are NUL-terminated. */
#pragma once

#include "base/buffer.h"

#include <stdbool.h>

enum { JSON_WRITER_DEPTH = 16 };

struct json_writer {
    struct buffer *out;
    enum json_letters letters;
    bool compact, break_line;
    unsigned indent; /* levels of nesting around the whole value */
    unsigned depth;
    bool is_object[JSON_WRITER_DEPTH], has_members[JSON_WRITER_DEPTH];
};

void json_begin_object(struct json_writer *writer, const char *key);
void json_begin_array(struct json_writer *writer, const char *key);
void json_end(struct json_writer *writer); /* the innermost of the two */

/* In a compact value, the next member or element begins a line. */
void json_break_line(struct json_writer *writer);

void json_put_text(struct json_writer *writer, const char *key, const char *text); /* NULL: null */
void json_put_text_n(struct json_writer *writer, const char *key, const char *text, size_t length);
void json_put_number(struct json_writer *writer, const char *key, uint64_t number);
void json_put_i64(struct json_writer *writer, const char *key, int64_t number);
void json_put_number_of(struct json_writer *writer, const char *key, size_t key_length, uint64_t number);
void json_put_bool(struct json_writer *writer, const char *key, bool value);
void json_put_null(struct json_writer *writer, const char *key);

/* So many digits of a number; null where it is not finite. */
void json_put_f64(struct json_writer *writer, const char *key, double value, int digits);

/* A value that is spelled already. */
void json_put_raw(struct json_writer *writer, const char *key, const char *text);

/* The shortest decimal that reads as the same F32, as Python prints a float: 1e-05, 0.22, 10000.0. */
void json_put_f32(struct json_writer *writer, const char *key, float value);

/* The same as text. `out` has room for 32 bytes. */
const char *json_f32_text(float value, char *out);
