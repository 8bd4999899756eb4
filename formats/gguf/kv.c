#include "formats/gguf/kv.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

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
