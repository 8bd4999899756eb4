/* Writing JSON as Python's json.dump(indent=2) and serde_json's pretty printer do, which agree: a member a line, two
 * spaces for each level, nothing between the brackets of what is empty, no newline at the end.
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
    unsigned indent; /* levels of nesting around the whole value */
    unsigned depth;
    bool is_object[JSON_WRITER_DEPTH], has_members[JSON_WRITER_DEPTH];
};

void json_begin_object(struct json_writer *writer, const char *key);
void json_begin_array(struct json_writer *writer, const char *key);
void json_end(struct json_writer *writer); /* the innermost of the two */

void json_put_text(struct json_writer *writer, const char *key, const char *text);
void json_put_text_n(struct json_writer *writer, const char *key, const char *text, size_t length);
void json_put_number(struct json_writer *writer, const char *key, uint64_t number);
void json_put_number_of(struct json_writer *writer, const char *key, size_t key_length, uint64_t number);
void json_put_bool(struct json_writer *writer, const char *key, bool value);
void json_put_null(struct json_writer *writer, const char *key);

/* A value that is spelled already. */
void json_put_raw(struct json_writer *writer, const char *key, const char *text);

/* The shortest decimal that reads as the same F32, as Python prints a float: 1e-05, 0.22, 10000.0. */
void json_put_f32(struct json_writer *writer, const char *key, float value);

/* The same as text. `out` has room for 32 bytes. */
const char *json_f32_text(float value, char *out);
