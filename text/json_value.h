/* How a value of a document is stored: for what parses it, what checks it and what reads it (json.h is the interface).
 */
#pragma once

#include "base/arena.h"
#include "text/json.h"

#include <string.h>
#include <yyjson.h>

/* A value of yyjson, followed by the values within it, in the order of the text; a member follows its key. Its length
 * has 32 bits here; above them are marks. `uni` of a container is the distance in bytes to what comes after it; of an
 * indexed object it is the index; of the root, which nothing follows, the document. */
struct json {
    yyjson_val of;
};

static const uint64_t LAST = UINT64_C(1) << 60, /* in its container */
    MEMBER = UINT64_C(1) << 61,                 /* of an object */
    INDEXED = UINT64_C(1) << 62,                /* an object */
    WHOLE = UINT64_C(1) << 62,                  /* a number like 2048.0, in what Python wrote */
    ROOT = UINT64_C(1) << 63;

/* A hash table of an object's members. A slot has half of the hash, which spares most comparisons of keys, and with
 * them a wait for memory. */
struct slot {
    uint32_t place; /* the distance from the object to the value of a member, in values; 0: empty */
    uint32_t half;
};

struct index {
    size_t size; /* of the object, in bytes: where the next value is */
    const struct json_document *document;
    size_t n_slots; /* a power of two, at least twice the members */
    struct slot slots[];
};

struct json_document {
    yyjson_doc *parsed;
    char *text;          /* holds keys, strings and numbers, each with a NUL */
    char *original;      /* what `text` was before the parser changed it; NULL if that was long */
    size_t length;       /* of either */
    struct arena *arena; /* the indices */
};

/* The parsing of one text. */
struct json_parser {
    struct json_document *document;
    const char *original; /* NULL: gone, so that lines are unknown */
    bool is_python, root_repeats;
    size_t room;       /* in bytes, for yyjson's values */
    size_t lacking;    /* bytes of memory that were not available */
    bool has_too_many; /* values */
    struct error *error;
};

/* Passes over all values, in the order of the text, marks them, makes the indices, checks what yyjson does not, and
 * lets the root lead to its document. */
bool json_check_values(const struct json_parser *parser);

/* Like json_read_python(), by the rules of json_parse(), but that keys of the root may appear twice. */
struct json_document *json_read_repeating(json_read_text *read, void *context, size_t length, struct error *error);

/* Returns the line of a value of valid JSON: that of its token. */
unsigned json_line_of_value(const char *text, size_t length, const struct json *root, const struct json *value);

static inline struct json *root_of(const struct json_document *document)
{
    return (struct json *)yyjson_doc_get_root(document->parsed);
}

static inline enum json_type type_of(const struct json *value)
{
    enum { KINDS = 32 }; /* the types of yyjson with their subtypes */
    static const unsigned char types[KINDS] = {
        [YYJSON_TYPE_RAW] = JSON_NUMBER,
        [YYJSON_TYPE_NULL] = JSON_NULL,
        [YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_FALSE] = JSON_FALSE,
        [YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_TRUE] = JSON_TRUE,
        [YYJSON_TYPE_STR] = JSON_STRING,
        [YYJSON_TYPE_STR | YYJSON_SUBTYPE_NOESC] = JSON_STRING,
        [YYJSON_TYPE_ARR] = JSON_ARRAY,
        [YYJSON_TYPE_OBJ] = JSON_OBJECT,
    };
    return (enum json_type)types[value->of.tag % KINDS];
}

/* Returns the number of elements or members, or the length of a text. */
static inline size_t length_of(const struct json *value)
{
    return (uint32_t)(value->of.tag >> YYJSON_TAG_BIT);
}

static inline bool has_mark(const struct json *value, uint64_t mark)
{
    return (value->of.tag & mark) != 0;
}

static inline const char *text_of(const struct json *value)
{
    return value->of.uni.str;
}

static inline const struct json *key_of(const struct json *member)
{
    return member - 1;
}

static inline const struct index *index_of(const struct json *object)
{
    return object->of.uni.ptr;
}

/* Returns the first value in an array or object, or NULL. */
static inline const struct json *first_value(const struct json *container)
{
    if (length_of(container) == 0)
        return NULL;
    return container + (type_of(container) == JSON_OBJECT ? 2 : 1);
}

static inline size_t size_of(const struct json *value)
{
    enum json_type type = type_of(value);
    if (type == JSON_OBJECT && has_mark(value, INDEXED))
        return index_of(value)->size;
    return type >= JSON_ARRAY ? value->of.uni.ofs : sizeof *value;
}

static inline const struct json *next_value(const struct json *value)
{
    if (has_mark(value, LAST))
        return NULL;
    const struct json *next = (const struct json *)((const char *)value + size_of(value));
    return has_mark(value, MEMBER) ? next + 1 : next;
}

static inline bool has_key(const struct json *member, const char *key, size_t length)
{
    const char *own = text_of(key_of(member));
    return length_of(key_of(member)) == length && *own == *key && memcmp(own, key, length) == 0;
}

static inline uint32_t half_of(uint64_t hash)
{
    return (uint32_t)(hash >> 32);
}

/* Returns the slot of a key with that hash, or the empty slot where it belongs. */
static inline size_t find_slot(const struct json *object, const struct index *index, const char *key, size_t length,
                               uint64_t hash)
{
    for (size_t at = (size_t)hash;; at++) {
        at &= index->n_slots - 1;
        struct slot slot = index->slots[at];
        if (slot.place == 0 || (slot.half == half_of(hash) && has_key(object + slot.place, key, length)))
            return at;
    }
}
