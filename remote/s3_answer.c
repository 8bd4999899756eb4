#include "remote/s3_answer.h"

#include "base/buffer.h"
#include "base/text.h"

#include <expat.h>
#include <stdlib.h>
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

enum { MAX_DEPTH = 16 };

struct reading {
    XML_Parser parser;
    struct arena *arena;
    const char *names[MAX_DEPTH]; /* of the open elements that the table knows; NULL: of others */
    unsigned depth;
    const char *fields[N_FIELDS];
    const struct element *open; /* whose text is being read */
    struct buffer text;
    struct s3_object *objects;
    size_t n_objects;
    const char *failure;
};

static void fail(struct reading *reading, const char *why)
{
    if (reading->failure == NULL)
        reading->failure = why;
    XML_StopParser(reading->parser, XML_FALSE);
}

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

static void begin_element(void *context, const XML_Char *name, const XML_Char **attributes)
{
    struct reading *reading = context;
    if (reading->depth == MAX_DEPTH) {
        fail(reading, "its elements are nested too deeply");
        return;
    }
    const char *known = known_name(name), *parent = reading->depth > 0 ? reading->names[reading->depth - 1] : NULL;
    reading->names[reading->depth++] = known;
    reading->open = find_element(parent, known);
    reading->text.length = 0;
    if (known != NULL && strcmp(known, "Contents") == 0)
        reading->fields[KEY] = reading->fields[SIZE] = reading->fields[ETAG] = reading->fields[LAST_MODIFIED] = NULL;
}

static void take_text(void *context, const XML_Char *text, int length)
{
    struct reading *reading = context;
    if (reading->open == NULL)
        return;
    if (reading->text.length + (size_t)length > MAX_TEXT)
        fail(reading, "an element is longer than 64 KiB");
    else
        buffer_append(&reading->text, text, (size_t)length);
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

static void add_object(struct reading *reading)
{
    struct s3_object object = {.etag = reading->fields[ETAG], .last_modified = reading->fields[LAST_MODIFIED]};
    const char *key = reading->fields[KEY], *size = reading->fields[SIZE];
    if (key == NULL || size == NULL || !read_size(size, &object.size)) {
        fail(reading, "an object has no key or no size");
        return;
    }
    object.key = decode_key(key, reading->arena);
    if (object.key == NULL) {
        fail(reading, "a key is not percent-encoded, or has a NUL byte");
        return;
    }
    if (text_ends_with(object.key, "/"))
        return;
    reading->objects = memory_grow(reading->objects, reading->n_objects, sizeof *reading->objects);
    reading->objects[reading->n_objects++] = object;
}

static void end_element(void *context, const XML_Char *name)
{
    struct reading *reading = context;
    if (reading->open != NULL)
        reading->fields[reading->open->field] =
            arena_strndup(reading->arena, (const char *)reading->text.bytes, reading->text.length);
    reading->open = NULL;
    reading->depth--;
    if (strcmp(name, "Contents") == 0)
        add_object(reading);
}

static void refuse_document_type(void *context, const XML_Char *name, const XML_Char *system_id,
                                 const XML_Char *public_id, int has_internal_subset)
{
    fail(context, "it has a document type");
}

/* The caller frees `objects` and `text`. */
static bool parse(struct reading *reading, const char *text, size_t length)
{
    reading->parser = XML_ParserCreate("UTF-8");
    if (reading->parser == NULL || length > INT32_MAX) {
        reading->failure = "there is no memory to read it";
        return false;
    }
    XML_SetUserData(reading->parser, reading);
    XML_SetElementHandler(reading->parser, begin_element, end_element);
    XML_SetCharacterDataHandler(reading->parser, take_text);
    XML_SetStartDoctypeDeclHandler(reading->parser, refuse_document_type);
    if (XML_Parse(reading->parser, text, (int)length, XML_TRUE) != XML_STATUS_OK && reading->failure == NULL)
        reading->failure = XML_ErrorString(XML_GetErrorCode(reading->parser));
    XML_ParserFree(reading->parser);
    return reading->failure == NULL;
}

static void finish(struct reading *reading)
{
    free(reading->objects);
    buffer_free(&reading->text);
}

bool s3_page_read(const char *text, size_t length, struct arena *arena, struct s3_page *ret_page, struct error *error)
{
    struct reading reading = {.arena = arena};
    bool valid =
        parse(&reading, text, length) || error_set(error, "the store's listing cannot be read: %s", reading.failure);
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
    finish(&reading);
    return valid;
}

struct s3_failure s3_failure_read(const char *text, size_t length, struct arena *arena)
{
    struct reading reading = {.arena = arena};
    struct s3_failure failure = {0};
    if (parse(&reading, text, length))
        failure = (struct s3_failure){reading.fields[CODE], reading.fields[MESSAGE], reading.fields[REGION]};
    finish(&reading);
    return failure;
}
