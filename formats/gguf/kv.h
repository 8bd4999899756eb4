/* The metadata of a GGUF file: an insertion-ordered dictionary of typed values.
 *
 * Setting a key again changes its value and keeps its place, as in the reference writer; several families depend on it.
 * Values are kept as they are written to the file. Empty strings and empty arrays are dropped, as the reference writer
 * drops them. A dictionary owns its memory. A key is set or found in time that
 * grows with the logarithm of their number: templates and base models give thousands of them. Layout of values: gguf
 * specification v3. */
#pragma once

#include "base/buffer.h"
#include "base/text_index.h"
#include "formats/json.h"

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

struct gguf_kv {
    char *key;
    enum gguf_type type;
    struct buffer value; /* as in the file: for an array its element type, count and elements */
};

struct gguf_kvs {
    struct gguf_kv *kvs;
    size_t n_kvs, capacity;
    struct text_index index; /* of the keys: where each stands */
};

void gguf_kvs_free(struct gguf_kvs *kvs);
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
void gguf_set_array(struct gguf_kvs *kvs, const char *key, enum gguf_type element_type, uint64_t count, struct buffer *elements);

/* The entry of that key, or NULL. */
const struct gguf_kv *gguf_kvs_find(const struct gguf_kvs *kvs, const char *key);
void gguf_kvs_remove(struct gguf_kvs *kvs, const char *key); /* takes as long as making all the others anew */
void gguf_kvs_cut(struct gguf_kvs *kvs, size_t count);       /* keeps the first `count` */

/* Appends one entry as it stands in the file: key, type, value. */
void gguf_write_kv(struct buffer *out, const struct gguf_kv *kv);
