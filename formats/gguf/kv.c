/* The keys of a GGUF, from the bytes of its header. */
#include "formats/gguf/kv.h"

#include "base/arena.h"
#include "base/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The walk through a header. */

enum { WINDOW_BYTES = 256 * 1024 };

struct gguf_cursor gguf_cursor_at(struct source *source, uint64_t offset, unsigned version, enum gguf_byte_order order)
{
    return (struct gguf_cursor){
        .source = source, .offset = offset, .version = version, .order = order, .window = memory_alloc(WINDOW_BYTES)};
}

void gguf_cursor_free(struct gguf_cursor *cursor)
{
    free(cursor->window);
}

uint64_t gguf_remaining(const struct gguf_cursor *cursor)
{
    return source_size(cursor->source) - cursor->offset;
}

static bool cut_short(const struct gguf_cursor *cursor, uint64_t wanted, struct error *error)
{
    return error_set(
        error, "truncated: %" PRIu64 " bytes expected at offset %" PRIu64 " of %" PRIu64 "; an interrupted download?",
        wanted, cursor->offset, source_size(cursor->source));
}

const unsigned char *gguf_take(struct gguf_cursor *cursor, uint64_t wanted, size_t *ret_length, struct error *error)
{
    uint64_t remaining = gguf_remaining(cursor);
    bool inside =
        cursor->offset >= cursor->window_offset && cursor->offset - cursor->window_offset < cursor->window_length;
    if (remaining == 0) {
        cut_short(cursor, wanted, error);
        return NULL;
    }
    if (!inside) {
        size_t length = remaining < WINDOW_BYTES ? (size_t)remaining : WINDOW_BYTES;
        cursor->window_length = 0;
        if (!source_read(cursor->source, cursor->offset, length, cursor->window, error))
            return NULL;
        cursor->window_offset = cursor->offset;
        cursor->window_length = length;
    }
    size_t at = (size_t)(cursor->offset - cursor->window_offset), held = cursor->window_length - at;
    *ret_length = wanted < held ? (size_t)wanted : held;
    cursor->offset += *ret_length;
    return cursor->window + at;
}

bool gguf_take_all(struct gguf_cursor *cursor, size_t length, void *out, struct error *error)
{
    if (length > gguf_remaining(cursor))
        return cut_short(cursor, length, error);
    for (unsigned char *to = out; length > 0;) {
        size_t n;
        const unsigned char *bytes = gguf_take(cursor, length, &n, error);
        if (bytes == NULL)
            return false;
        memcpy(to, bytes, n);
        to += n;
        length -= n;
    }
    return true;
}

bool gguf_skip(struct gguf_cursor *cursor, uint64_t length, struct error *error)
{
    if (length > gguf_remaining(cursor))
        return cut_short(cursor, length, error);
    cursor->offset += length;
    return true;
}

bool gguf_take_number(struct gguf_cursor *cursor, unsigned size, uint64_t *ret_number, struct error *error)
{
    unsigned char bytes[8];
    if (!gguf_take_all(cursor, size, bytes, error))
        return false;
    *ret_number = cursor->order == GGUF_BIG_ENDIAN ? read_be(bytes, size) : read_le(bytes, size);
    return true;
}

bool gguf_take_count(struct gguf_cursor *cursor, uint64_t *ret_count, struct error *error)
{
    return gguf_take_number(cursor, cursor->version == 1 ? 4 : 8, ret_count, error);
}

/* Keys and values. */

static void free_kv(struct gguf_kv *kv)
{
    if (!kv->is_key_borrowed)
        free(kv->key);
    if (!kv->is_borrowed)
        buffer_free(&kv->value);
}

static void index_all(struct gguf_kvs *kvs)
{
    text_index_free(&kvs->index);
    for (size_t i = 0; i < kvs->n_kvs; i++)
        text_index_add(&kvs->index, kvs->kvs[i].key, strlen(kvs->kvs[i].key), i);
}

void gguf_kvs_free(struct gguf_kvs *kvs)
{
    for (size_t i = 0; i < kvs->n_kvs; i++)
        free_kv(&kvs->kvs[i]);
    free(kvs->kvs);
    text_index_free(&kvs->index);
    *kvs = (struct gguf_kvs){0};
}

struct gguf_kvs gguf_kvs_copy(const struct gguf_kvs *kvs)
{
    struct gguf_kvs copy = {memory_alloc(kvs->n_kvs * sizeof *copy.kvs), .n_kvs = kvs->n_kvs, .capacity = kvs->n_kvs};
    for (size_t i = 0; i < kvs->n_kvs; i++) {
        copy.kvs[i] = kvs->kvs[i];
        copy.kvs[i].is_borrowed = copy.kvs[i].is_key_borrowed = true;
    }
    copy.index = text_index_copy(&kvs->index);
    copy.absent_bytes = kvs->absent_bytes;
    return copy;
}

static struct gguf_kv *find(const struct gguf_kvs *kvs, const char *key)
{
    size_t place;
    return text_index_find(&kvs->index, key, strlen(key), &place) ? &kvs->kvs[place] : NULL;
}

const struct gguf_kv *gguf_kvs_find(const struct gguf_kvs *kvs, const char *key)
{
    return find(kvs, key);
}

bool gguf_kvs_add(struct gguf_kvs *kvs, const struct gguf_kv *kv)
{
    if (!text_index_add(&kvs->index, kv->key, strlen(kv->key), kvs->n_kvs))
        return false;
    if (kvs->n_kvs == kvs->capacity) {
        kvs->capacity = kvs->capacity * 2 + 16;
        kvs->kvs = memory_resize(kvs->kvs, kvs->capacity * sizeof *kvs->kvs);
    }
    kvs->kvs[kvs->n_kvs++] = *kv;
    return true;
}

/* Returns the buffer for a new value of the key: its entry's, emptied, or a new entry's at the end. */
static struct buffer *entry(struct gguf_kvs *kvs, const char *key, enum gguf_type type)
{
    struct gguf_kv *kv = find(kvs, key);
    if (kv == NULL) {
        gguf_kvs_add(kvs, &(struct gguf_kv){.key = memory_strdup(key)});
        kv = &kvs->kvs[kvs->n_kvs - 1];
    }
    kv->type = type;
    kv->stored = (struct gguf_stored){0};
    if (!kv->is_borrowed)
        buffer_free(&kv->value);
    kv->value = (struct buffer){0};
    kv->is_borrowed = false;
    return &kv->value;
}

static void set_integer(struct gguf_kvs *kvs, const char *key, enum gguf_type type, uint64_t value, size_t size)
{
    buffer_append_le(entry(kvs, key, type), value, size);
}

void gguf_set_u32(struct gguf_kvs *kvs, const char *key, uint32_t value)
{
    set_integer(kvs, key, GGUF_U32, value, 4);
}

void gguf_set_i32(struct gguf_kvs *kvs, const char *key, int32_t value)
{
    set_integer(kvs, key, GGUF_I32, (uint32_t)value, 4);
}

void gguf_set_u16(struct gguf_kvs *kvs, const char *key, uint16_t value)
{
    set_integer(kvs, key, GGUF_U16, value, 2);
}

void gguf_set_f32(struct gguf_kvs *kvs, const char *key, double value)
{
    float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    set_integer(kvs, key, GGUF_F32, bits, 4);
}

void gguf_set_bool(struct gguf_kvs *kvs, const char *key, bool value)
{
    set_integer(kvs, key, GGUF_BOOL, value, 1);
}

void gguf_append_string(struct buffer *elements, const char *text, size_t length)
{
    buffer_append_le(elements, length, 8);
    buffer_append(elements, text, length);
}

void gguf_set_string(struct gguf_kvs *kvs, const char *key, const char *text, size_t length)
{
    if (length != 0)
        gguf_append_string(entry(kvs, key, GGUF_STRING), text, length);
}

void gguf_set_text(struct gguf_kvs *kvs, const char *key, const char *text)
{
    gguf_set_string(kvs, key, text, strlen(text));
}

struct buffer *gguf_begin_array(struct gguf_kvs *kvs, const char *key, enum gguf_type element_type, uint64_t count,
                                size_t n_bytes)
{
    enum { HEAD = 4 + 8 };
    if (count == 0)
        return NULL;
    struct buffer *value = entry(kvs, key, GGUF_ARRAY);
    buffer_reserve(value, HEAD + n_bytes);
    buffer_append_le(value, (uint64_t)element_type, 4);
    buffer_append_le(value, count, 8);
    return value;
}

void gguf_set_array(struct gguf_kvs *kvs, const char *key, enum gguf_type element_type, uint64_t count,
                    struct buffer *elements)
{
    struct buffer *value = gguf_begin_array(kvs, key, element_type, count, elements->length);
    if (value != NULL)
        buffer_append(value, elements->bytes, elements->length);
    buffer_free(elements);
}

void gguf_kvs_remove(struct gguf_kvs *kvs, const char *key)
{
    struct gguf_kv *kv = find(kvs, key);
    if (kv == NULL)
        return;
    free_kv(kv);
    size_t after = kvs->n_kvs - (size_t)(kv - kvs->kvs) - 1;
    memmove(kv, kv + 1, after * sizeof *kv);
    kvs->n_kvs--;
    index_all(kvs);
}

void gguf_kvs_move_last(struct gguf_kvs *kvs, size_t place)
{
    struct gguf_kv last = kvs->kvs[kvs->n_kvs - 1];
    memmove(kvs->kvs + place + 1, kvs->kvs + place, (kvs->n_kvs - 1 - place) * sizeof last);
    kvs->kvs[place] = last;
    index_all(kvs);
}
