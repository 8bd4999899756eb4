/* Writing JSON as Python's json.dump(indent=2) and serde_json's pretty printer do, which agree: a member a line, two
 * spaces for each level, nothing between the brackets of what is empty, no newline at the end. Or compact, for files of
 * our own: no spaces, and a new line only where one is asked for.
 *
 * yajl's generator cannot write these: it puts the brackets of what is empty on two lines, has no letters but UTF-8,
 * spells control characters in upper case, and knows no number but one of its own format. Files are compared to the
 * byte.
 *
 * Zero-initialized but for its buffer and letters, a writer begins a value; members of an object have keys, elements of
 * an array NULL. A key that may hold anything is put before its member, which then has NULL; other keys are
 * NUL-terminated. */
#pragma once

#include "base/buffer.h"
#include "formats/json.h"

#include <stdbool.h>

/* Brackets within each other: room for a document (JSON_MAX_DEPTH) in a member of another one. */
enum { JSON_WRITER_DEPTH = 256 };

struct json_writer {
    struct buffer *out;
    enum json_letters letters;
    bool compact, break_line, has_key;
    unsigned indent; /* levels of nesting around the whole value */
    unsigned width;  /* of a level, in blanks; 0: two */
    unsigned depth;
    unsigned char levels[JSON_WRITER_DEPTH];
};

void json_begin_object(struct json_writer *writer, const char *key);
void json_begin_array(struct json_writer *writer, const char *key);
void json_end(struct json_writer *writer); /* the innermost of the two */

/* The key of the member that comes next. */
void json_put_key(struct json_writer *writer, const char *key, size_t length);

/* In a compact value, the next member or element begins a line. */
void json_break_line(struct json_writer *writer);

/* In one that is not, what is in the innermost brackets stays on their line, as json.dump() writes without indent. */
void json_keep_line(struct json_writer *writer);

/* A place to come back to: json_take_back() removes all that was put since, open brackets included. */
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

/* Puts a number with so many digits; null if it is not finite. */
void json_put_f64(struct json_writer *writer, const char *key, double value, int digits);

/* Puts a value that was read. `edit`, unless it is NULL, is asked for each member of an object in it: true says that it
 * has put another one in its place, or none. `depth` is 1 in an object that is the whole value, and one more in each
 * object and array within. */
typedef bool json_edit(void *context, struct json_writer *writer, const struct json_member *member, unsigned depth);
void json_put_edited(struct json_writer *writer, const struct json *value, json_edit *edit, void *context);

/* Puts members or elements as `template` spells them: JSON with ' for the quotation mark, in which a value may be
 *     %s  a text, or NULL: null    %t  a text and its length (size_t)    %u  a uint64_t
 *     %b  true or false            %r  a value that is spelled already
 * A newline is json_break_line(). Brackets may stay open, for loops to go on in them, and the template may close
 * brackets that were open. A template is a constant of the program: it is not checked. */
void json_put_template(struct json_writer *writer, const char *template, ...);

/* Puts a value that is spelled already. */
void json_put_raw(struct json_writer *writer, const char *key, const char *text);

/* The shortest decimal that reads as the same F32, as Python prints a float: 1e-05, 0.22, 10000.0. */
void json_put_f32(struct json_writer *writer, const char *key, float value);

/* Write the text of an F32 or F64 as json_put_f32() spells it; return `out`. */
enum { JSON_FLOAT_TEXT = 40 };
const char *json_f32_text(float value, char out[JSON_FLOAT_TEXT]);
const char *json_f64_text(double value, char out[JSON_FLOAT_TEXT]);
