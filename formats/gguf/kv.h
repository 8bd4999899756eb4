/* Typed metadata: an insertion-ordered dictionary of GGUF's values, made key by key or read from a file.
 *
 * Setting a key again changes its value and keeps its place, as in the reference writer; several families depend on it.
 * Empty strings and empty arrays are dropped, as the reference writer drops them. A dictionary owns its memory. A key
 * is set or found in time that grows with the logarithm of their number: templates and base models give thousands of
 * them.
 *
 * A value that is set is kept as a file of version 3, little-endian, has it. One that is read stays where it is, unless
 * it is small: nobody pays for a vocabulary before asking for it, and the source must live as long. Whoever takes
 * values sees no difference, nor any of versions and byte orders; only taking what is large may fail, where the file
 * has shrunk meanwhile. Layout of values: gguf specification, versions 1 to 3. */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/text_index.h"
#include "formats/gguf/cursor.h"
#include "formats/json_write.h"

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
    GGUF_MAX_DEPTH = 8,          /* of arrays in arrays, which the reference does not read */
};

/* Where a value is that was not copied from its file. */
struct gguf_stored {
    struct source *source; /* NULL: the value is in memory */
    uint64_t offset, length;
    unsigned version;
    enum gguf_byte_order order;
    bool canonical;            /* the bytes are those that the reference would write for this value */
    enum gguf_type array_type; /* of an array: that of its elements, and their number */
    uint64_t array_count;
};

struct gguf_kv {
    char *key;
    enum gguf_type type;
    struct buffer value; /* as in the file: for an array its element type, count and elements */
    bool is_borrowed;    /* the value's memory is that of another dictionary's entry */
    struct gguf_stored stored;
};

struct gguf_kvs {
    struct gguf_kv *kvs;
    size_t n_kvs, capacity;
    struct text_index index; /* of the keys: where each is */
};

void gguf_kvs_free(struct gguf_kvs *kvs);

/* A dictionary that may be changed, and shares the values of the other, which must live longer. */
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

/* The entry of that key, or NULL. */
const struct gguf_kv *gguf_kvs_find(const struct gguf_kvs *kvs, const char *key);
void gguf_kvs_remove(struct gguf_kvs *kvs, const char *key); /* takes as long as making all the others anew */

/* The last entry becomes the one of that number, of those that are there; takes as long. */
void gguf_kvs_move_last(struct gguf_kvs *kvs, size_t place);

/* Adds an entry after the others, and takes its memory; false where the key is there already. */
bool gguf_kvs_add(struct gguf_kvs *kvs, const struct gguf_kv *kv);

/* Reading. A key of a file: key, type, value. The error does not name the key; *ret_kv is valid until the next one is
 * added. */
bool gguf_kvs_read(struct gguf_kvs *kvs, struct gguf_cursor *cursor, struct error *error);

/* "u32", "string"; "?" for what is not a type. */
const char *gguf_type_name(enum gguf_type type);

/* The value of a key; false where there is none of that kind, or it does not fit: whole numbers of any width are
 * numbers; both kinds of floating point are doubles. */
bool gguf_get_u64(const struct gguf_kvs *kvs, const char *key, uint64_t *ret_value);
bool gguf_get_i64(const struct gguf_kvs *kvs, const char *key, int64_t *ret_value);
bool gguf_get_f64(const struct gguf_kvs *kvs, const char *key, double *ret_value);
bool gguf_get_bool(const struct gguf_kvs *kvs, const char *key, bool *ret_value);

/* A string in the arena, with a NUL after it that is not counted; NULL where there is none, with an error that says so.
 */
const char *gguf_get_string(const struct gguf_kvs *kvs, const char *key, struct arena *arena, size_t *ret_length,
                            struct error *error);

/* An array, in an arena, whose elements are all at hand. */
struct gguf_array {
    enum gguf_type type;
    uint64_t count;
    const unsigned char *elements; /* as in the file */
    const uint64_t *offsets;       /* where each begins, and one more; of strings only */
};
bool gguf_get_array(const struct gguf_kvs *kvs, const char *key, struct arena *arena, struct gguf_array *ret_array,
                    struct error *error);

/* Element `index`, which is below the count, under the same rules as above. The text of a string ends with no NUL. */
bool gguf_array_u64(const struct gguf_array *array, uint64_t index, uint64_t *ret_value);
bool gguf_array_i64(const struct gguf_array *array, uint64_t index, int64_t *ret_value);
bool gguf_array_f64(const struct gguf_array *array, uint64_t index, double *ret_value);
bool gguf_array_bool(const struct gguf_array *array, uint64_t index, bool *ret_value);
/* NULL: not of strings */
const char *gguf_array_string(const struct gguf_array *array, uint64_t index, size_t *ret_length);

/* Type and number of elements of an array, without reading them; false for what is not one. */
bool gguf_array_outline(const struct gguf_kv *kv, enum gguf_type *ret_type, uint64_t *ret_count);

/* Writes the value as JSON. An array of more than `most` elements becomes {"type":"string","length":280000}. What
 * cannot be read becomes null. */
void gguf_put_json(struct json_writer *writer, const char *key, const struct gguf_kv *kv, uint64_t most);

/* Appends the same for people: a string as it is, without quotes and escapes, and numbers that JSON has none for. */
void gguf_append_text(struct buffer *out, const struct gguf_kv *kv, uint64_t most);

/* Writing. Appends the value, or one entry (key, type, value), as the reference writes it: version 3, little-endian,
 * truth as 1, texts up to their first NUL. */
bool gguf_write_value(struct buffer *out, const struct gguf_kv *kv, struct error *error);
bool gguf_write_kv(struct buffer *out, const struct gguf_kv *kv, struct error *error);
