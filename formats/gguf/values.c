/* Values of a dictionary: reading from a file, taking, showing, writing. */
#include "formats/gguf/kv.h"

#include "base/arena.h"
#include "base/checked.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_BYTES = 256 }; /* bytes; larger values stay in their file */

static const struct {
    const char *name;
    unsigned size; /* 0: varies */
} types[] = {
    [GGUF_U8] = {"u8", 1},         [GGUF_I8] = {"i8", 1},       [GGUF_U16] = {"u16", 2}, [GGUF_I16] = {"i16", 2},
    [GGUF_U32] = {"u32", 4},       [GGUF_I32] = {"i32", 4},     [GGUF_F32] = {"f32", 4}, [GGUF_BOOL] = {"bool", 1},
    [GGUF_STRING] = {"string", 0}, [GGUF_ARRAY] = {"array", 0}, [GGUF_U64] = {"u64", 8}, [GGUF_I64] = {"i64", 8},
    [GGUF_F64] = {"f64", 8},
};
enum { N_TYPES = sizeof types / sizeof *types };

const char *gguf_type_name(enum gguf_type type)
{
    return (unsigned)type < N_TYPES ? types[type].name : "?";
}

/* Walking through a value. */

struct walk {
    struct gguf_cursor *cursor;
    struct buffer *out; /* takes the value in version 3, little-endian; NULL: skips it */
    bool cut;           /* cuts strings at their first NUL, like programs that use C strings */
    bool has_nul, has_odd_truth;
};

/* The arrays around the next element. */
struct level {
    enum gguf_type type;
    uint64_t remaining;
};

static bool walk_text(struct walk *walk, uint64_t length, struct error *error)
{
    bool cut = false;
    while (length > 0) {
        size_t n;
        const unsigned char *bytes = gguf_take(walk->cursor, length, &n, error);
        if (bytes == NULL)
            return false;
        const unsigned char *nul = memchr(bytes, '\0', n);
        walk->has_nul |= nul != NULL;
        if (walk->out != NULL && !cut)
            buffer_append(walk->out, bytes, walk->cut && nul != NULL ? (size_t)(nul - bytes) : n);
        cut |= walk->cut && nul != NULL;
        length -= n;
    }
    return true;
}

static bool walk_string(struct walk *walk, struct error *error)
{
    uint64_t length, remaining;
    if (!gguf_take_count(walk->cursor, &length, error))
        return false;
    remaining = gguf_remaining(walk->cursor);
    if (length > GGUF_MAX_STRING)
        return error_set(error, "string too long: %" PRIu64 " bytes, the limit is %d", length, GGUF_MAX_STRING);
    if (length > remaining)
        return error_set(error,
                         "truncated: a string of %" PRIu64 " bytes, but only %" PRIu64
                         " bytes follow; an interrupted download?",
                         length, remaining);
    if (walk->out == NULL)
        return walk_text(walk, length, error);
    size_t place = walk->out->length;
    buffer_append_zeros(walk->out, 8);
    if (!walk_text(walk, length, error))
        return false;
    uint64_t kept = walk->out->length - place - 8;
    for (unsigned i = 0; i < 8; i++)
        walk->out->bytes[place + i] = (unsigned char)(kept >> (8 * i));
    return true;
}

static bool walk_truths(struct walk *walk, uint64_t count, struct error *error)
{
    while (count > 0) {
        size_t n;
        const unsigned char *bytes = gguf_take(walk->cursor, count, &n, error);
        if (bytes == NULL)
            return false;
        for (size_t i = 0; i < n; i++) {
            walk->has_odd_truth |= bytes[i] > 1;
            if (walk->out != NULL)
                buffer_append_le(walk->out, bytes[i] != 0, 1);
        }
        count -= n;
    }
    return true;
}

/* Walks through `count` values of a type that is not an array. */
static bool walk_simple(struct walk *walk, enum gguf_type type, uint64_t count, struct error *error)
{
    unsigned size = types[type].size;
    uint64_t number;
    if (type == GGUF_BOOL)
        return walk_truths(walk, count, error);
    if (type != GGUF_STRING && walk->out == NULL)
        return gguf_skip(walk->cursor, count * size, error);
    for (; count > 0; count--) {
        if (type == GGUF_STRING) {
            if (!walk_string(walk, error))
                return false;
            continue;
        }
        if (!gguf_take_number(walk->cursor, size, &number, error))
            return false;
        buffer_append_le(walk->out, number, size);
    }
    return true;
}

static bool check_type(uint64_t type, struct error *error)
{
    return type < N_TYPES ||
           error_set(error, "unknown value type %" PRIu64 "; download the file again, or update wfs", type);
}

static bool begin_array(struct walk *walk, struct level *ret_level, struct error *error)
{
    uint64_t type, count, remaining;
    if (!gguf_take_number(walk->cursor, 4, &type, error) || !check_type(type, error) ||
        !gguf_take_count(walk->cursor, &count, error))
        return false;
    remaining = gguf_remaining(walk->cursor);
    if (count > GGUF_MAX_ELEMENTS)
        return error_set(error, "array too long: %" PRIu64 " elements, the limit is %d", count, GGUF_MAX_ELEMENTS);
    unsigned count_bytes = walk->cursor->version == 1 ? 4 : 8;
    unsigned least = types[type].size != 0 ? types[type].size : count_bytes;
    if (count > remaining / least)
        return error_set(error,
                         "truncated: an array of %" PRIu64 " elements, but only %" PRIu64
                         " bytes follow; an interrupted download?",
                         count, remaining);
    if (walk->out != NULL) {
        buffer_append_le(walk->out, type, 4);
        buffer_append_le(walk->out, count, 8);
    }
    *ret_level = (struct level){(enum gguf_type)type, count};
    return true;
}

static bool walk_value(struct walk *walk, enum gguf_type type, struct error *error)
{
    struct level levels[GGUF_MAX_DEPTH];
    unsigned depth = 1;
    if (type != GGUF_ARRAY)
        return walk_simple(walk, type, 1, error);
    if (!begin_array(walk, &levels[0], error))
        return false;
    while (depth > 0) {
        struct level *level = &levels[depth - 1];
        if (level->type != GGUF_ARRAY) {
            if (!walk_simple(walk, level->type, level->remaining, error))
                return false;
            depth--;
        } else if (level->remaining == 0) {
            depth--;
        } else {
            level->remaining--;
            if (depth == GGUF_MAX_DEPTH)
                return error_set(error, "arrays are nested more than %d deep", GGUF_MAX_DEPTH);
            if (!begin_array(walk, &levels[depth++], error))
                return false;
        }
    }
    return true;
}

/* Reading. */

static bool read_key(struct gguf_cursor *cursor, char **ret_key, struct error *error)
{
    struct buffer text = {0};
    struct walk walk = {.cursor = cursor, .out = &text};
    bool good = walk_string(&walk, error);
    if (good && text.length == 8)
        good = error_set(error, "its name is empty; download the file again, or ask its maker");
    if (good && walk.has_nul)
        good = error_set(error, "its name contains a NUL byte; download the file again, or ask its maker");
    if (good)
        *ret_key = memory_strndup((const char *)text.bytes + 8, text.length - 8);
    buffer_free(&text);
    return good;
}

/* Reads a value. Copies a short one, unless writing has to cut it; remembers the place of any other. */
static bool read_value(struct gguf_kv *kv, struct gguf_cursor *cursor, struct error *error)
{
    struct walk walk = {.cursor = cursor};
    uint64_t begin = cursor->offset;
    if (kv->type == GGUF_ARRAY) {
        struct level outline;
        if (!begin_array(&walk, &outline, error))
            return false;
        kv->stored.array_type = outline.type;
        kv->stored.array_count = outline.remaining;
        cursor->offset = begin;
    }
    if (!walk_value(&walk, kv->type, error))
        return false;
    uint64_t end = cursor->offset;
    if (end - begin <= SMALL_BYTES && !walk.has_nul) {
        cursor->offset = begin;
        walk.out = &kv->value;
        kv->stored = (struct gguf_stored){0};
        if (!walk_value(&walk, kv->type, error))
            return false;
        kv->value.capacity = kv->value.length; /* there may be very many entries */
        kv->value.bytes = memory_resize(kv->value.bytes, kv->value.capacity);
        return true;
    }
    kv->stored.source = cursor->source;
    kv->stored.offset = begin;
    kv->stored.length = end - begin;
    kv->stored.version = cursor->version;
    kv->stored.order = cursor->order;
    kv->stored.canonical =
        cursor->version > 1 && cursor->order == GGUF_LITTLE_ENDIAN && !walk.has_nul && !walk.has_odd_truth;
    return true;
}

bool gguf_kvs_read(struct gguf_kvs *kvs, struct gguf_cursor *cursor, struct error *error)
{
    char *key;
    uint64_t type;
    if (!read_key(cursor, &key, error))
        return false;
    struct gguf_kv kv = {.key = key};
    bool good = gguf_take_number(cursor, 4, &type, error) && check_type(type, error);
    if (good) {
        kv.type = (enum gguf_type)type;
        good = read_value(&kv, cursor, error);
    }
    if (!good) {
        error_prefix(error, "'%.200s'", key);
    } else if (gguf_kvs_add(kvs, &kv)) {
        return true;
    } else {
        error_set(error, "'%.200s' occurs twice; download the file again, or ask its maker", key);
    }
    free(key);
    buffer_free(&kv.value);
    return false;
}

/* Taking. */

static bool load(const struct gguf_kv *kv, bool cut, struct buffer *out, struct error *error)
{
    const struct gguf_stored *stored = &kv->stored;
    if (stored->source == NULL) {
        buffer_append(out, kv->value.bytes, kv->value.length);
        return true;
    }
    struct gguf_cursor cursor = gguf_cursor_at(stored->source, stored->offset, stored->version, stored->order);
    bool loaded = walk_value(&(struct walk){.cursor = &cursor, .out = out, .cut = cut}, kv->type, error);
    gguf_cursor_free(&cursor);
    return loaded;
}

/* A value of an integer type: bits and a sign. */
struct integer {
    uint64_t bits; /* two's complement if negative */
    bool is_negative;
};

static bool take_integer(enum gguf_type type, const unsigned char *bytes, struct integer *ret_integer)
{
    bool is_signed = type == GGUF_I8 || type == GGUF_I16 || type == GGUF_I32 || type == GGUF_I64;
    if (!is_signed && type != GGUF_U8 && type != GGUF_U16 && type != GGUF_U32 && type != GGUF_U64)
        return false;
    unsigned size = types[type].size;
    uint64_t bits = read_le(bytes, size);
    bool is_negative = is_signed && bits >> (8 * size - 1) != 0;
    if (is_negative && size < 8)
        bits |= UINT64_MAX << (8 * size);
    *ret_integer = (struct integer){bits, is_negative};
    return true;
}

static bool take_u64(enum gguf_type type, const unsigned char *bytes, uint64_t *ret_value)
{
    struct integer integer;
    if (!take_integer(type, bytes, &integer) || integer.is_negative)
        return false;
    *ret_value = integer.bits;
    return true;
}

static bool take_i64(enum gguf_type type, const unsigned char *bytes, int64_t *ret_value)
{
    struct integer integer;
    if (!take_integer(type, bytes, &integer) || (!integer.is_negative && integer.bits > INT64_MAX))
        return false;
    *ret_value = (int64_t)integer.bits;
    return true;
}

static bool take_f64(enum gguf_type type, const unsigned char *bytes, double *ret_value)
{
    if (type != GGUF_F32 && type != GGUF_F64)
        return false;
    uint64_t bits = read_le(bytes, types[type].size);
    uint32_t low = (uint32_t)bits;
    float single;
    memcpy(&single, &low, sizeof single);
    if (type == GGUF_F32)
        *ret_value = (double)single;
    else
        memcpy(ret_value, &bits, sizeof *ret_value);
    return true;
}

static bool take_bool(enum gguf_type type, const unsigned char *bytes, bool *ret_value)
{
    if (type != GGUF_BOOL)
        return false;
    *ret_value = *bytes != 0;
    return true;
}

/* Finds a value that is neither a string nor an array: such values are short, and in memory. */
static const struct gguf_kv *find_simple(const struct gguf_kvs *kvs, const char *key)
{
    const struct gguf_kv *kv = gguf_kvs_find(kvs, key);
    return kv != NULL && types[kv->type].size != 0 ? kv : NULL;
}

bool gguf_get_u64(const struct gguf_kvs *kvs, const char *key, uint64_t *ret_value)
{
    const struct gguf_kv *kv = find_simple(kvs, key);
    return kv != NULL && take_u64(kv->type, kv->value.bytes, ret_value);
}

bool gguf_get_i64(const struct gguf_kvs *kvs, const char *key, int64_t *ret_value)
{
    const struct gguf_kv *kv = find_simple(kvs, key);
    return kv != NULL && take_i64(kv->type, kv->value.bytes, ret_value);
}

bool gguf_get_f64(const struct gguf_kvs *kvs, const char *key, double *ret_value)
{
    const struct gguf_kv *kv = find_simple(kvs, key);
    return kv != NULL && take_f64(kv->type, kv->value.bytes, ret_value);
}

bool gguf_get_bool(const struct gguf_kvs *kvs, const char *key, bool *ret_value)
{
    const struct gguf_kv *kv = find_simple(kvs, key);
    return kv != NULL && take_bool(kv->type, kv->value.bytes, ret_value);
}

/* Loads the value of a key of that type into the caller's buffer. */
static bool load_key(const struct gguf_kvs *kvs, const char *key, enum gguf_type type, struct buffer *out,
                     struct error *error)
{
    const struct gguf_kv *kv = gguf_kvs_find(kvs, key);
    if (kv == NULL)
        return error_set(error, "the key '%s' is missing", key);
    if (kv->type != type)
        return error_set(error, "'%s' is %s, not %s", key, gguf_type_name(kv->type), gguf_type_name(type));
    return load(kv, false, out, error) || error_prefix(error, "'%s'", key);
}

const char *gguf_get_string(const struct gguf_kvs *kvs, const char *key, struct arena *arena, size_t *ret_length,
                            struct error *error)
{
    struct buffer value = {0};
    const char *text = NULL;
    if (load_key(kvs, key, GGUF_STRING, &value, error)) {
        *ret_length = value.length - 8;
        text = arena_strndup(arena, (const char *)value.bytes + 8, *ret_length);
    }
    buffer_free(&value);
    return text;
}

const char *gguf_get_text(const struct gguf_kvs *kvs, const char *key, struct arena *arena)
{
    struct error unused;
    size_t length;
    return gguf_get_string(kvs, key, arena, &length, &unused);
}

/* Arrays: a loaded value is complete and in version 3, so these functions check nothing. */

static struct gguf_array array_at(const unsigned char *bytes, struct arena *arena)
{
    struct gguf_array array = {(enum gguf_type)read_le(bytes, 4), read_le(bytes + 4, 8), bytes + 12, NULL};
    if (array.type != GGUF_STRING)
        return array;
    uint64_t *offsets = arena_array(arena, array.count + 1, sizeof *offsets);
    for (uint64_t i = 0; i < array.count; i++)
        offsets[i + 1] = offsets[i] + 8 + read_le(array.elements + offsets[i], 8);
    array.offsets = offsets;
    return array;
}

bool gguf_get_array(const struct gguf_kvs *kvs, const char *key, struct arena *arena, struct gguf_array *ret_array,
                    struct error *error)
{
    struct buffer value = {0};
    bool loaded = load_key(kvs, key, GGUF_ARRAY, &value, error);
    if (loaded)
        *ret_array = array_at(arena_copy(arena, value.bytes, value.length), arena);
    buffer_free(&value);
    return loaded;
}

static const unsigned char *element_at(const struct gguf_array *array, uint64_t index)
{
    return array->elements + index * types[array->type].size;
}

bool gguf_array_u64(const struct gguf_array *array, uint64_t index, uint64_t *ret_value)
{
    return take_u64(array->type, element_at(array, index), ret_value);
}

bool gguf_array_i64(const struct gguf_array *array, uint64_t index, int64_t *ret_value)
{
    return take_i64(array->type, element_at(array, index), ret_value);
}

bool gguf_array_f64(const struct gguf_array *array, uint64_t index, double *ret_value)
{
    return take_f64(array->type, element_at(array, index), ret_value);
}

bool gguf_array_bool(const struct gguf_array *array, uint64_t index, bool *ret_value)
{
    return take_bool(array->type, element_at(array, index), ret_value);
}

const char *gguf_array_string(const struct gguf_array *array, uint64_t index, size_t *ret_length)
{
    if (array->type != GGUF_STRING)
        return NULL;
    *ret_length = (size_t)(array->offsets[index + 1] - array->offsets[index] - 8);
    return (const char *)array->elements + array->offsets[index] + 8;
}

bool gguf_array_outline(const struct gguf_kv *kv, enum gguf_type *ret_type, uint64_t *ret_count)
{
    if (kv->type != GGUF_ARRAY)
        return false;
    bool in_memory = kv->stored.source == NULL;
    *ret_type = in_memory ? (enum gguf_type)read_le(kv->value.bytes, 4) : kv->stored.array_type;
    *ret_count = in_memory ? read_le(kv->value.bytes + 4, 8) : kv->stored.array_count;
    return true;
}

/* Showing. */

/* Writes the shortest decimal that identifies the number; JSON has none for infinities and NaN. */
static void put_float(struct json_writer *writer, const char *key, double value, bool is_single)
{
    char text[32];
    int digits = is_single ? 6 : 15;
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while ((is_single ? strtof(text, NULL) != (float)value : strtod(text, NULL) != value) && ++digits <= 17);
    json_put_raw(writer, key, isfinite(value) ? text : "null");
}

/* Writes the value at `bytes`, which is not an array; returns its length. */
static uint64_t put_simple(struct json_writer *writer, const char *key, enum gguf_type type, const unsigned char *bytes)
{
    struct integer integer;
    double number;
    bool truth;
    if (type == GGUF_STRING) {
        uint64_t length = read_le(bytes, 8);
        json_put_text_n(writer, key, (const char *)bytes + 8, length);
        return 8 + length;
    }
    if (take_bool(type, bytes, &truth))
        json_put_bool(writer, key, truth);
    else if (take_f64(type, bytes, &number))
        put_float(writer, key, number, type == GGUF_F32);
    else if (take_integer(type, bytes, &integer) && integer.is_negative)
        json_put_i64(writer, key, (int64_t)integer.bits);
    else
        json_put_number(writer, key, integer.bits);
    return types[type].size;
}

static void put_array(struct json_writer *writer, const char *key, const unsigned char *bytes)
{
    struct level levels[GGUF_MAX_DEPTH];
    unsigned depth = 0;
    uint64_t at = 0;
    do {
        levels[depth] = (struct level){(enum gguf_type)read_le(bytes + at, 4), read_le(bytes + at + 4, 8)};
        json_begin_array(writer, depth++ == 0 ? key : NULL);
        at += 12;
        while (depth > 0 && (levels[depth - 1].type != GGUF_ARRAY || levels[depth - 1].remaining == 0)) {
            struct level *level = &levels[--depth];
            for (; level->remaining > 0; level->remaining--)
                at += put_simple(writer, NULL, level->type, bytes + at);
            json_end(writer);
        }
        if (depth > 0)
            levels[depth - 1].remaining--;
    } while (depth > 0);
}

void gguf_put_json(struct json_writer *writer, const char *key, const struct gguf_kv *kv, uint64_t most)
{
    struct error error;
    struct buffer value = {0};
    enum gguf_type type;
    uint64_t count;
    if (gguf_array_outline(kv, &type, &count) && count > most) {
        json_begin_object(writer, key);
        json_put_text(writer, "type", gguf_type_name(type));
        json_put_number(writer, "length", count);
        json_end(writer);
    } else if (!load(kv, false, &value, &error)) {
        json_put_null(writer, key);
    } else if (kv->type == GGUF_ARRAY) {
        put_array(writer, key, value.bytes);
    } else {
        put_simple(writer, key, kv->type, value.bytes);
    }
    buffer_free(&value);
}

void gguf_append_text(struct buffer *out, const struct gguf_kv *kv, uint64_t most)
{
    struct error error;
    struct buffer value = {0};
    double number;
    if (take_f64(kv->type, kv->value.bytes, &number) && isnan(number))
        buffer_append_text(out, "nan");
    else if (take_f64(kv->type, kv->value.bytes, &number) && isinf(number))
        buffer_append_text(out, number > 0 ? "inf" : "-inf");
    else if (kv->type != GGUF_STRING)
        gguf_put_json(&(struct json_writer){.out = out, .letters = JSON_UTF8, .compact = true}, NULL, kv, most);
    else if (load(kv, false, &value, &error))
        buffer_append(out, value.bytes + 8, value.length - 8);
    buffer_free(&value);
}

/* Writing. */

bool gguf_write_value(struct buffer *out, const struct gguf_kv *kv, struct error *error)
{
    return load(kv, true, out, error) || error_prefix(error, "'%.200s'", kv->key);
}

bool gguf_write_kv(struct buffer *out, const struct gguf_kv *kv, struct error *error)
{
    gguf_append_string(out, kv->key, strlen(kv->key));
    buffer_append_le(out, (uint64_t)kv->type, 4);
    return gguf_write_value(out, kv, error);
}
