#include "remote/s3_answer.h"

#include "base/arena.h"
#include "base/text.h"
#include "text/xml_read.h"

#include <string.h>

enum { MAX_TEXT = 64 * 1024 };

/* An element whose text is wanted: where, below which parent, and into which of the results. */
struct element {
    const char *parent, *name;
    size_t field; /* index into struct fields */
};

enum field { KEY, SIZE, ETAG, LAST_MODIFIED, TRUNCATED, NEXT, CODE, MESSAGE, REGION, N_FIELDS };

static const struct element elements[] = {
    {"Contents", "Key", KEY},
    {"Contents", "Size", SIZE},
    {"Contents", "ETag", ETAG},
    {"Contents", "LastModified", LAST_MODIFIED},
    {"ListBucketResult", "IsTruncated", TRUNCATED},
    {"ListBucketResult", "NextContinuationToken", NEXT},
    {"Error", "Code", CODE},
    {"Error", "Message", MESSAGE},
    {"Error", "Region", REGION},
};

/* `own` holds what is not for the results: an attempt that runs out of memory frees arenas. */
struct reading {
    struct arena *arena, *own;
    const char *names[XML_MOST_DEPTH]; /* of the open elements that the table knows; NULL: of others */
    unsigned depth;
    const char *fields[N_FIELDS];
    const struct element *open; /* whose text is being read */
    char *text;                 /* MAX_TEXT bytes */
    size_t n_text;
    struct s3_object *objects;
    size_t n_objects;
};

/* The name without a namespace prefix, as the table writes it; NULL for other elements. */
static const char *known_name(const char *name)
{
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        if (strcmp(elements[i].parent, name) == 0)
            return elements[i].parent;
        if (strcmp(elements[i].name, name) == 0)
            return elements[i].name;
    }
    return NULL;
}

static const struct element *find_element(const char *parent, const char *name)
{
    for (size_t i = 0; parent != NULL && name != NULL && i < sizeof elements / sizeof *elements; i++)
        if (strcmp(elements[i].parent, parent) == 0 && strcmp(elements[i].name, name) == 0)
            return &elements[i];
    return NULL;
}

static const char *begin_element(void *context, const char *name)
{
    struct reading *reading = context;
    const char *known = known_name(name), *parent = reading->depth > 0 ? reading->names[reading->depth - 1] : NULL;
    reading->names[reading->depth++] = known;
    reading->open = find_element(parent, known);
    reading->n_text = 0;
    if (known != NULL && strcmp(known, "Contents") == 0)
        reading->fields[KEY] = reading->fields[SIZE] = reading->fields[ETAG] = reading->fields[LAST_MODIFIED] = NULL;
    return NULL;
}

static const char *take_text(void *context, const char *text, size_t length)
{
    struct reading *reading = context;
    if (reading->open == NULL)
        return NULL;
    if (length > MAX_TEXT - reading->n_text)
        return "an element is longer than 64 KiB";
    memcpy(reading->text + reading->n_text, text, length);
    reading->n_text += length;
    return NULL;
}

/* Decodes a key as encoding-type=url writes it; NULL if it has a NUL byte or a '%' without two digits. */
static const char *decode_key(const char *text, struct arena *arena)
{
    char *key = arena_alloc(arena, strlen(text) + 1), *out = key;
    for (const char *c = text; *c != '\0'; c++) {
        int high, low;
        if (*c != '%') {
            *out++ = *c == '+' ? ' ' : *c;
            continue;
        }
        high = text_hex_digit(c[1]);
        low = high >= 0 ? text_hex_digit(c[2]) : -1;
        if (low < 0 || high * 16 + low == 0)
            return NULL;
        *out++ = (char)(high * 16 + low);
        c += 2;
    }
    *out = '\0';
    return key;
}

static bool read_size(const char *text, uint64_t *ret_size)
{
    uint64_t size = 0;
    for (const char *c = text; *c != '\0'; c++)
        if (*c < '0' || *c > '9' || __builtin_mul_overflow(size, 10, &size) ||
            __builtin_add_overflow(size, (uint64_t)(*c - '0'), &size))
            return false;
    *ret_size = size;
    return *text != '\0';
}

static const char *add_object(struct reading *reading)
{
    struct s3_object object = {.etag = reading->fields[ETAG], .last_modified = reading->fields[LAST_MODIFIED]};
    const char *key = reading->fields[KEY], *size = reading->fields[SIZE];
    if (key == NULL || size == NULL || !read_size(size, &object.size))
        return "an object has no key or no size";
    object.key = decode_key(key, reading->arena);
    if (object.key == NULL)
        return "a key is not percent-encoded, or has a NUL byte";
    if (text_ends_with(object.key, "/"))
        return NULL;
    reading->objects = arena_grow(reading->own, reading->objects, reading->n_objects, sizeof *reading->objects);
    reading->objects[reading->n_objects++] = object;
    return NULL;
}

static const char *end_element(void *context, const char *name)
{
    struct reading *reading = context;
    if (reading->open != NULL)
        reading->fields[reading->open->field] = arena_strndup(reading->arena, reading->text, reading->n_text);
    reading->open = NULL;
    reading->depth--;
    return strcmp(name, "Contents") == 0 ? add_object(reading) : NULL;
}

/* Returns NULL, or why the answer cannot be read. The caller frees the reading's own arena. */
static const char *parse(struct reading *reading, const char *text, size_t length)
{
    static const struct xml_reader reader = {"UTF-8", 0, begin_element, end_element, take_text};
    reading->own = arena_new();
    reading->text = arena_alloc(reading->own, MAX_TEXT);
    return xml_read(text, length, &reader, reading);
}

bool s3_page_read(const char *text, size_t length, struct arena *arena, struct s3_page *ret_page, struct error *error)
{
    struct reading reading = {.arena = arena};
    const char *why = parse(&reading, text, length);
    bool valid = why == NULL || error_set(error, "the store's listing cannot be read: %s", why);
    if (valid && reading.fields[TRUNCATED] == NULL)
        valid = error_set(error, "the store's listing cannot be read: it has no IsTruncated");
    if (valid) {
        bool more = strcmp(reading.fields[TRUNCATED], "true") == 0;
        *ret_page = (struct s3_page){
            arena_copy(arena, reading.objects, reading.n_objects * sizeof *reading.objects),
            reading.n_objects,
            more ? reading.fields[NEXT] : NULL,
        };
        if (more && reading.fields[NEXT] == NULL)
            valid = error_set(error, "the store's listing cannot be read: it is truncated, without a token for more");
    }
    arena_free(reading.own);
    return valid;
}

struct s3_failure s3_failure_read(const char *text, size_t length, struct arena *arena)
{
    struct reading reading = {.arena = arena};
    struct s3_failure failure = {0};
    if (parse(&reading, text, length) == NULL)
        failure = (struct s3_failure){reading.fields[CODE], reading.fields[MESSAGE], reading.fields[REGION]};
    arena_free(reading.own);
    return failure;
}
