/* Keys of a GGUF, and the walk through the bytes of its header. */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/text_index.h"
#include "sources/source.h"
#include "text/json_write.h"

/* A walk through the bytes of a GGUF header, from the first to the last.
 *
 * Numbers have the byte order of the file, lengths the width of its version. Bytes are read once, through a window,
 * never from a mapping, so that a change of the file cannot contradict an earlier check. Errors name the missing bytes;
 * the caller puts the file's name before them. */

enum gguf_byte_order { GGUF_LITTLE_ENDIAN, GGUF_BIG_ENDIAN };

struct gguf_cursor {
    struct source *source;
    uint64_t offset; /* of the next byte */
    unsigned version;
    enum gguf_byte_order order;
    unsigned char *window; /* the bytes from window_offset on */
    uint64_t window_offset;
    size_t window_length;
};

struct gguf_cursor gguf_cursor_at(struct source *source, uint64_t offset, unsigned version, enum gguf_byte_order order);
void gguf_cursor_free(struct gguf_cursor *cursor);

uint64_t gguf_remaining(const struct gguf_cursor *cursor);

/* Returns the next bytes: at least one, at most `wanted`, as many as the window holds; valid until the next call. NULL,
 * with an error, at the end of the file or if it cannot be read. */
const unsigned char *gguf_take(struct gguf_cursor *cursor, uint64_t wanted, size_t *ret_length, struct error *error);
bool gguf_take_all(struct gguf_cursor *cursor, size_t length, void *out, struct error *error);
bool gguf_skip(struct gguf_cursor *cursor, uint64_t length, struct error *error);

/* Take a number of `size` bytes, and a count or length: 4 bytes in version 1, 8 in later ones. */
bool gguf_take_number(struct gguf_cursor *cursor, unsigned size, uint64_t *ret_number, struct error *error);
bool gguf_take_count(struct gguf_cursor *cursor, uint64_t *ret_count, struct error *error);

/* Typed metadata: a dictionary of GGUF values in insertion order, made key by key or read from a file.
 *
 * Setting a key again changes its value and keeps its place, as in the reference writer; several families depend on it.
 * Empty strings and empty arrays are dropped, as the reference writer drops them. A dictionary owns its memory. Setting
 * or finding a key takes constant time: templates and base models give thousands of them.
 *
 * A value that is set is kept in the form of a file of version 3, little-endian. A value that is read stays in its
 * file, unless it is small: an unused vocabulary costs nothing, and the source must outlive the dictionary. The
 * functions that take values hide this, and versions and byte orders; only taking a large value may fail, if the file
 * has shrunk. Source: the gguf specification, versions 1 to 3. */

enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
};

enum {
    GGUF_MAX_STRING = 1 << 30,   /* bytes; the reference's limit */
    GGUF_MAX_ELEMENTS = 1 << 30, /* of an array; the reference's limit */
    GGUF_MAX_DEPTH = 8,          /* of nested arrays, which the reference does not read */
};

/* The place of a value that was not copied from its file. */
struct gguf_stored {
    struct source *source; /* NULL: the value is in memory */
    uint64_t offset, length;
    unsigned version;
    enum gguf_byte_order order;
    bool canonical;            /* the bytes are the reference writer's for this value */
    enum gguf_type array_type; /* of an array: the type and number of its elements */
    uint64_t array_count;
};

struct gguf_kv {
    char *key;
    enum gguf_type type;
    struct buffer value; /* as in the file: for an array its element type, count and elements */
    bool is_borrowed;    /* the value's memory belongs to another dictionary */
    bool is_key_borrowed;
    struct gguf_stored stored;
};

struct gguf_kvs {
    struct gguf_kv *kvs;
    size_t n_kvs, capacity;
    struct text_index index; /* from keys to places in kvs */
    uint64_t absent_bytes;   /* of more entries, of which only the size is known: files have sizes, but no bytes */
};

void gguf_kvs_free(struct gguf_kvs *kvs);

/* Copies a dictionary. The copy may be changed, and shares keys and values with the original, which must outlive it. */
struct gguf_kvs gguf_kvs_copy(const struct gguf_kvs *kvs);

void gguf_set_u32(struct gguf_kvs *kvs, const char *key, uint32_t value);
void gguf_set_i32(struct gguf_kvs *kvs, const char *key, int32_t value);
void gguf_set_u16(struct gguf_kvs *kvs, const char *key, uint16_t value);
void gguf_set_f32(struct gguf_kvs *kvs, const char *key, double value); /* rounded to F32 */
void gguf_set_bool(struct gguf_kvs *kvs, const char *key, bool value);
void gguf_set_string(struct gguf_kvs *kvs, const char *key, const char *text, size_t length);
void gguf_set_text(struct gguf_kvs *kvs, const char *key, const char *text); /* NUL-terminated */

/* Arrays are collected in a buffer, element by element, and then set: for strings gguf_append_string(), for numbers
 * buffer_append_le(). Takes the memory of *elements, which is empty afterwards. */
void gguf_append_string(struct buffer *elements, const char *text, size_t length);
void gguf_set_array(struct gguf_kvs *kvs, const char *key, enum gguf_type element_type, uint64_t count,
                    struct buffer *elements);

/* The same for long arrays, without copying: adds an entry for `count` elements of about `n_bytes` in all, which the
 * caller appends to the buffer returned before it changes another key. NULL: there are no elements. */
struct buffer *gguf_begin_array(struct gguf_kvs *kvs, const char *key, enum gguf_type element_type, uint64_t count,
                                size_t n_bytes);
enum { GGUF_LENGTH = 8 }; /* bytes before a string's */

/* Returns the entry of that key, or NULL. */
const struct gguf_kv *gguf_kvs_find(const struct gguf_kvs *kvs, const char *key);
void gguf_kvs_remove(struct gguf_kvs *kvs, const char *key); /* takes time linear in the number of keys */

/* Moves the last entry to an existing place, and those from there on one further; takes as long. */
void gguf_kvs_move_last(struct gguf_kvs *kvs, size_t place);

/* Adds an entry at the end, and takes its memory; returns false, taking nothing, if the key is present. */
bool gguf_kvs_add(struct gguf_kvs *kvs, const struct gguf_kv *kv);

/* Reads an entry of a file: key, type, value. The error names the key if that was read; a duplicate key is an error. */
bool gguf_kvs_read(struct gguf_kvs *kvs, struct gguf_cursor *cursor, struct error *error);

/* Returns "u32", "string" ...; "?" for an unknown type. */
const char *gguf_type_name(enum gguf_type type);

/* Return the value of a key; false if there is none of that kind, or it does not fit. Integers of any width count as
 * integers, both kinds of floating point as doubles. */
bool gguf_get_u64(const struct gguf_kvs *kvs, const char *key, uint64_t *ret_value);
bool gguf_get_i64(const struct gguf_kvs *kvs, const char *key, int64_t *ret_value);
bool gguf_get_f64(const struct gguf_kvs *kvs, const char *key, double *ret_value);
bool gguf_get_bool(const struct gguf_kvs *kvs, const char *key, bool *ret_value);

/* Returns a string in the arena, with a NUL after it that is not counted; NULL, with an error, if the key is missing,
 * is not a string, or cannot be read. */
const char *gguf_get_string(const struct gguf_kvs *kvs, const char *key, struct arena *arena, size_t *ret_length,
                            struct error *error);

/* Returns such a string for callers to whom its length and the error do not matter. */
const char *gguf_get_text(const struct gguf_kvs *kvs, const char *key, struct arena *arena);

/* An array in memory. */
struct gguf_array {
    enum gguf_type type;
    uint64_t count;
    const unsigned char *elements; /* as in the file */
    const uint64_t *offsets;       /* where each string begins, and the end; else NULL */
};
bool gguf_get_array(const struct gguf_kvs *kvs, const char *key, struct arena *arena, struct gguf_array *ret_array,
                    struct error *error);

/* Return element `index`, which is below the count, under the rules above. A string has no NUL at its end. */
bool gguf_array_u64(const struct gguf_array *array, uint64_t index, uint64_t *ret_value);
bool gguf_array_i64(const struct gguf_array *array, uint64_t index, int64_t *ret_value);
bool gguf_array_f64(const struct gguf_array *array, uint64_t index, double *ret_value);
bool gguf_array_bool(const struct gguf_array *array, uint64_t index, bool *ret_value);
/* Returns NULL if the elements are not strings. */
const char *gguf_array_string(const struct gguf_array *array, uint64_t index, size_t *ret_length);

/* Returns the type and number of an array's elements without reading them; false if the value is not an array. */
bool gguf_array_outline(const struct gguf_kv *kv, enum gguf_type *ret_type, uint64_t *ret_count);

/* Writes the value as JSON. An array of more than `most` elements becomes {"type":"string","length":280000}; a value
 * that cannot be read becomes null. */
void gguf_put_json(struct json_writer *writer, const char *key, const struct gguf_kv *kv, uint64_t most);

/* Appends the value as text for people: like JSON, but a string without quotes and escapes, and with numbers that JSON
 * lacks. */
void gguf_append_text(struct buffer *out, const struct gguf_kv *kv, uint64_t most);

/* Append the value, or an entry (key, type, value), as the reference writes it: version 3, little-endian, true as 1,
 * strings up to their first NUL. Fail if the value cannot be read. */
bool gguf_write_value(struct buffer *out, const struct gguf_kv *kv, struct error *error);
bool gguf_write_kv(struct buffer *out, const struct gguf_kv *kv, struct error *error);
