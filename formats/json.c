#include "formats/json.h"

#include "base/arena.h"
#include "base/binary_search.h"
#include "base/sort.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

enum { INDEXED_MEMBERS = 9 }; /* objects with so many members get an index; smaller ones are searched in order */

struct json {
    const char *key;
    union {
        const char *text;      /* of a string or number */
        const uint32_t *order; /* of an indexed object: distances to its members, sorted by key */
    };
    uint32_t key_length, text_length;
    uint32_t count; /* members or elements */
    uint32_t skip;  /* values in this subtree, itself included: where the next value is */
    uint32_t line;
    uint8_t type;
    bool last;     /* in its container */
    bool is_whole; /* a number with a fraction or exponent, and yet a whole one, in what Python wrote */
};

struct json_document {
    struct json *values; /* in the order of the text */
    size_t n_values, capacity;
    char *text;          /* all keys, strings and numbers, each with a NUL */
    struct arena *arena; /* the indices */
};

struct open_container {
    uint32_t value, last_child;
};

struct parser {
    struct json_document *document;
    yajl_handle yajl;
    const char *text, *counted; /* lines are counted up to `counted` */
    uint32_t line;
    char *text_end;
    const char *key;
    size_t key_length;
    struct open_container open[JSON_MAX_DEPTH];
    unsigned depth;
    json_take_member *take; /* takes the members of the root; NULL: they stay */
    void *context;          /* of `take` */
    struct error *error;
    bool failed; /* `error` is set: yajl's own message is of no use */
};

/* Returns the line of an offset, which must not be before the previous call's. */
static uint32_t line_of(struct parser *parser, size_t offset)
{
    const char *end = parser->text + offset, *found;
    while (parser->counted < end && (found = memchr(parser->counted, '\n', (size_t)(end - parser->counted))) != NULL) {
        parser->counted = found + 1;
        parser->line++;
    }
    parser->counted = end;
    return parser->line;
}

static uint32_t current_line(struct parser *parser)
{
    return line_of(parser, yajl_get_bytes_consumed(parser->yajl));
}

/* Adds a value; NULL, with the error set, if the document is too large. */
static struct json *add_value(struct parser *parser, enum json_type type)
{
    struct json_document *document = parser->document;
    if (document->n_values == JSON_MAX_VALUES) {
        parser->failed = true;
        error_set(parser->error, "more than %d values", JSON_MAX_VALUES);
        return NULL;
    }
    if (document->n_values == document->capacity) {
        document->capacity = document->capacity * 2 + 64;
        document->values = memory_resize(document->values, document->capacity * sizeof *document->values);
    }
    uint32_t index = (uint32_t)document->n_values++;
    struct json *value = &document->values[index];
    *value = (struct json){.type = (uint8_t)type,
                           .skip = 1,
                           .key = parser->key,
                           .key_length = (uint32_t)parser->key_length,
                           .line = current_line(parser)};
    parser->key = NULL;
    parser->key_length = 0;
    if (parser->depth > 0) {
        struct open_container *container = &parser->open[parser->depth - 1];
        container->last_child = index;
        document->values[container->value].count++;
    }
    return value;
}

/* Keeps a text. Decoded, it is never longer than its spelling with quotes, or with the byte that ends a number. */
static const char *keep_text(struct parser *parser, const void *text, size_t length)
{
    char *kept = parser->text_end;
    memcpy(kept, text, length);
    kept[length] = '\0';
    parser->text_end += length + 1;
    return kept;
}

/* Ends a value: hands over a complete member of the root, and drops it. */
static int end_value(struct parser *parser)
{
    struct json_document *document = parser->document;
    if (parser->take == NULL || parser->depth != 1)
        return 1;
    const struct json *value = &document->values[1];
    const struct json_member member = {value->key, value->key_length, value};
    parser->failed = !parser->take(parser->context, &member, parser->error);
    document->n_values = 1;
    document->values[0].count = 0;
    parser->text_end = document->text;
    return !parser->failed;
}

static int on_null(void *context)
{
    return add_value(context, JSON_NULL) != NULL && end_value(context);
}

static int on_boolean(void *context, int value)
{
    return add_value(context, value ? JSON_TRUE : JSON_FALSE) != NULL && end_value(context);
}

static int on_text(struct parser *parser, enum json_type type, const void *text, size_t length)
{
    const char *kept = keep_text(parser, text, length);
    struct json *value = add_value(parser, type);
    if (value == NULL)
        return 0;
    value->text = kept;
    value->text_length = (uint32_t)length;
    return end_value(parser);
}

static int on_number(void *context, const char *text, size_t length)
{
    return on_text(context, JSON_NUMBER, text, length);
}

static int on_string(void *context, const unsigned char *text, size_t length)
{
    return on_text(context, JSON_STRING, text, length);
}

static int on_key(void *context, const unsigned char *text, size_t length)
{
    struct parser *parser = context;
    parser->key = keep_text(parser, text, length);
    parser->key_length = length;
    return 1;
}

static int refuse_root(struct parser *parser)
{
    parser->failed = true;
    error_set(parser->error, "not a JSON object");
    return 0;
}

static int on_start(struct parser *parser, enum json_type type)
{
    if (parser->depth == JSON_MAX_DEPTH) {
        parser->failed = true;
        error_set(parser->error, "line %u: nested more than %d deep", current_line(parser), JSON_MAX_DEPTH);
        return 0;
    }
    if (parser->take != NULL && parser->depth == 0 && type != JSON_OBJECT)
        return refuse_root(parser);
    if (add_value(parser, type) == NULL)
        return 0;
    parser->open[parser->depth++] = (struct open_container){.value = (uint32_t)parser->document->n_values - 1};
    return 1;
}

static int on_start_object(void *context)
{
    return on_start(context, JSON_OBJECT);
}

static int on_start_array(void *context)
{
    return on_start(context, JSON_ARRAY);
}

static struct json *close_container(struct parser *parser)
{
    struct open_container *container = &parser->open[--parser->depth];
    struct json *value = &parser->document->values[container->value];
    value->skip = (uint32_t)parser->document->n_values - container->value;
    if (value->count > 0)
        parser->document->values[container->last_child].last = true;
    return value;
}

static int on_end_array(void *context)
{
    close_container(context);
    return end_value(context);
}

/* Returns the first value in an array or object, or NULL. */
static const struct json *first_value(const struct json *container)
{
    return container->count > 0 ? container + 1 : NULL;
}

static const struct json *next_value(const struct json *value)
{
    return value->last ? NULL : value + value->skip;
}

static const char *key_of(const void *context, uint32_t index, size_t *ret_length)
{
    const struct json *object = context, *member = object + index;
    *ret_length = member->key_length;
    return member->key;
}

static bool same_key(const struct json *a, const struct json *b)
{
    return text_compare(a->key, a->key_length, b->key, b->key_length) == 0;
}

static int refuse_duplicate(struct parser *parser, const struct json *member)
{
    parser->failed = true;
    error_set(parser->error, "line %u: key '%.200s' appears twice in one object", member->line, member->key);
    return 0;
}

static int on_end_object(void *context)
{
    struct parser *parser = context;
    struct json *object = close_container(parser);
    if (object->count < INDEXED_MEMBERS) {
        for (const struct json *member = first_value(object); member != NULL; member = next_value(member))
            for (const struct json *other = first_value(object); other != member; other = next_value(other))
                if (same_key(member, other))
                    return refuse_duplicate(parser, member);
        return end_value(parser);
    }
    uint32_t *order = arena_array(parser->document->arena, object->count, sizeof *order), n = 0;
    for (const struct json *member = first_value(object); member != NULL; member = next_value(member))
        order[n++] = (uint32_t)(member - object);
    sort_texts(order, n, key_of, object);
    for (uint32_t i = 1; i < n; i++)
        if (same_key(object + order[i - 1], object + order[i]))
            return refuse_duplicate(parser, object + order[i]);
    object->order = order;
    return end_value(parser);
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_start_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end_object,
    .yajl_start_array = on_start_array,
    .yajl_end_array = on_end_array,
};

static int hex_quad(const char *text, const char *end)
{
    int value = 0;
    if (end - text < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = text_hex_digit(text[i]);
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Finds a \u escape of a lone surrogate, which yajl would replace. Valid JSON has backslashes only in strings. */
static bool surrogates_paired(const char *text, size_t length, size_t *ret_offset)
{
    const char *end = text + length, *at = text;
    while ((at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
        if (end - at < 2 || at[1] != 'u') {
            at += end - at < 2 ? 1 : 2;
            continue;
        }
        *ret_offset = (size_t)(at - text);
        int unit = hex_quad(at + 2, end);
        at += 2;
        if (unit >= 0xdc00 && unit <= 0xdfff)
            return false;
        if (unit >= 0xd800 && unit <= 0xdbff) {
            int low = end - at >= 10 && at[4] == '\\' && at[5] == 'u' ? hex_quad(at + 6, end) : -1;
            if (low < 0xdc00 || low > 0xdfff)
                return false;
            at += 10;
        }
    }
    return true;
}

/* Returns the number of bytes before the first form feed or vertical tab. yajl takes both as white space, which JSON
 * does not allow; in a text they are escaped. */
static size_t length_without_breaks(const char *text, size_t length)
{
    const char *feed = memchr(text, '\f', length);
    size_t before = feed != NULL ? (size_t)(feed - text) : length;
    const char *tab = memchr(text, '\v', before);
    return tab != NULL ? (size_t)(tab - text) : before;
}

/* Allocates memory for yajl, which does not check for NULL. */
static void *allocate(void *unused, size_t size)
{
    return memory_alloc(size);
}

static void *reallocate(void *unused, void *memory, size_t size)
{
    return memory_resize(memory, size);
}

static void release(void *unused, void *memory)
{
    free(memory);
}

static bool run_yajl(struct parser *parser, const char *text, size_t length, struct error *error)
{
    yajl_alloc_funcs memory = {.malloc = allocate, .realloc = reallocate, .free = release};
    yajl_handle yajl = parser->yajl = yajl_alloc(&callbacks, &memory, parser);
    yajl_config(yajl, yajl_dont_validate_strings, 1); /* checked before, more strictly */
    yajl_status status = yajl_parse(yajl, (const unsigned char *)text, length);
    size_t place = yajl_get_bytes_consumed(yajl);
    if (status ==
        yajl_status_ok) /* white space, which ends a string that is still open after the document: yajl would pass it */
        status = yajl_parse(yajl, (const unsigned char *)"\n", 1);
    if (status == yajl_status_ok)
        status = yajl_complete_parse(yajl);
    if (status != yajl_status_ok && !parser->failed) {
        unsigned char *message = yajl_get_error(yajl, 0, (const unsigned char *)text, length);
        error_set(error, "line %u: invalid JSON at offset %zu: %.*s", line_of(parser, place), place,
                  (int)strcspn((char *)message, "\n"), (char *)message);
        yajl_free_error(yajl, message);
    }
    yajl_free(yajl);
    return status == yajl_status_ok;
}

/* Checks the rules that yajl does not. */
static bool check_text(const char *text, size_t length, struct error *error)
{
    size_t place = text_valid_prefix(text, length);
    if (place != length)
        return error_set(error, "invalid UTF-8 at offset %zu", place);
    if (!surrogates_paired(text, length, &place))
        return error_set(error, "a lone surrogate at offset %zu", place);
    if ((place = length_without_breaks(text, length)) != length) /* yajl takes both for white space */
        return error_set(error, "a form feed or a vertical tab at offset %zu", place);
    return length <= UINT32_MAX / 2 || error_set(error, "JSON too large: %zu bytes", length);
}

static struct json_document *parse(const char *text, size_t length, json_take_member *take, void *context,
                                   struct error *error)
{
    if (!check_text(text, length, error))
        return NULL;
    struct json_document *document = memory_alloc(sizeof *document);
    *document = (struct json_document){.text = memory_alloc(length + 1), .arena = arena_new()};
    struct parser parser = {.document = document,
                            .text = text,
                            .counted = text,
                            .line = 1,
                            .text_end = document->text,
                            .take = take,
                            .context = context,
                            .error = error};
    if (!run_yajl(&parser, text, length, error)) {
        json_free(document);
        return NULL;
    }
    document->values->last = true;
    return document;
}

struct json_document *json_parse(const char *text, size_t length, struct error *error)
{
    return parse(text, length, NULL, NULL, error);
}

bool json_parse_members(const char *text, size_t length, json_take_member *take, void *context, struct error *error)
{
    struct json_document *document = parse(text, length, take, context, error);
    bool good = document != NULL;
    if (good && document->values->type != JSON_OBJECT)
        good = error_set(error, "not a JSON object");
    json_free(document);
    return good;
}

/* Marks whole numbers that are spelled as floats: 2048.0. */
static void mark_whole(struct json_document *document)
{
    const double most = 9007199254740992.0; /* 2^53: doubles are exact up to here */
    for (size_t i = 0; i < document->n_values; i++) {
        struct json *value = &document->values[i];
        double number;
        if (json_double(value, &number) && !json_is_integer(value) && number >= -most && number <= most)
            value->is_whole = number == (double)(int64_t)number;
    }
}

struct json_document *json_parse_python(const char *text, size_t length, struct error *error)
{
    static const char infinity[] = "Infinity", number[] = "1e999999"; /* of equal length, so offsets stay */
    char *copy = NULL;
    bool in_string = false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            in_string = !in_string;
        else if (in_string && text[i] == '\\')
            i++;
        if (in_string || text[i] != *infinity || length - i < strlen(infinity) ||
            memcmp(text + i, infinity, strlen(infinity)) != 0)
            continue;
        if (copy == NULL)
            copy = memcpy(memory_alloc(length), text, length);
        memcpy(copy + i, number, strlen(number));
    }
    struct json_document *document = json_parse(copy != NULL ? copy : text, length, error);
    free(copy);
    if (document != NULL)
        mark_whole(document);
    return document;
}

void json_free(struct json_document *document)
{
    if (document == NULL)
        return;
    free(document->values);
    free(document->text);
    arena_free(document->arena);
    free(document);
}

const struct json *json_root(const struct json_document *document)
{
    return document->values;
}

unsigned json_line(const struct json *value)
{
    return value != NULL ? value->line : 0;
}

enum json_type json_type(const struct json *value)
{
    return value != NULL ? (enum json_type)value->type : JSON_NULL;
}

bool json_is(const struct json *value, enum json_type type)
{
    return value != NULL && value->type == type;
}

size_t json_count(const struct json *array)
{
    return json_is(array, JSON_ARRAY) ? array->count : 0;
}

const struct json *json_first(const struct json *array)
{
    return json_is(array, JSON_ARRAY) ? first_value(array) : NULL;
}

const struct json *json_next(const struct json *element)
{
    return element != NULL && element->key == NULL ? next_value(element) : NULL;
}

const struct json *json_at(const struct json *array, size_t index)
{
    const struct json *element = json_first(array);
    while (element != NULL && index-- > 0)
        element = json_next(element);
    return element;
}

size_t json_count_members(const struct json *object)
{
    return json_is(object, JSON_OBJECT) ? object->count : 0;
}

bool json_next_member(const struct json *object, struct json_member *member)
{
    if (!json_is(object, JSON_OBJECT))
        return false;
    const struct json *next = member->value == NULL ? first_value(object) : next_value(member->value);
    if (next == NULL)
        return false;
    *member = (struct json_member){next->key, next->key_length, next};
    return true;
}

struct wanted_member {
    const struct json *object;
    const char *key;
    size_t length;
};

static bool member_comes_before(const void *context, size_t index)
{
    const struct wanted_member *wanted = context;
    const struct json *member = wanted->object + wanted->object->order[index];
    return text_compare(member->key, member->key_length, wanted->key, wanted->length) < 0;
}

const struct json *json_get_n(const struct json *object, const char *key, size_t key_length)
{
    if (!json_is(object, JSON_OBJECT))
        return NULL;
    if (object->count < INDEXED_MEMBERS) {
        for (const struct json *member = first_value(object); member != NULL; member = next_value(member))
            if (text_compare(member->key, member->key_length, key, key_length) == 0)
                return member;
        return NULL;
    }
    const struct wanted_member wanted = {object, key, key_length};
    size_t found = search_first(object->count, member_comes_before, &wanted);
    if (found == object->count)
        return NULL;
    const struct json *member = object + object->order[found];
    return text_compare(member->key, member->key_length, key, key_length) == 0 ? member : NULL;
}

const struct json *json_get(const struct json *object, const char *key)
{
    return json_get_n(object, key, strlen(key));
}

const char *json_string(const struct json *value, size_t *ret_length)
{
    if (!json_is(value, JSON_STRING))
        return NULL;
    if (ret_length != NULL)
        *ret_length = value->text_length;
    return value->text;
}

bool json_string_is(const struct json *value, const char *text)
{
    size_t length;
    const char *string = json_string(value, &length);
    return string != NULL && length == strlen(text) && memcmp(string, text, length) == 0;
}

const char *json_number_text(const struct json *value)
{
    return json_is(value, JSON_NUMBER) ? value->text : NULL;
}

bool json_is_integer(const struct json *value)
{
    return json_is(value, JSON_NUMBER) && strpbrk(value->text, ".eE") == NULL;
}

bool json_u64(const struct json *value, uint64_t *ret_value)
{
    if (value != NULL && value->is_whole && value->text[0] != '-') {
        *ret_value = (uint64_t)strtod(value->text, NULL);
        return true;
    }
    if (!json_is_integer(value) || value->text[0] == '-')
        return false;
    errno = 0;
    unsigned long long number = strtoull(value->text, NULL, 10);
    if (errno != 0)
        return false;
    *ret_value = number;
    return true;
}

bool json_i64(const struct json *value, int64_t *ret_value)
{
    if (value != NULL && value->is_whole) {
        *ret_value = (int64_t)strtod(value->text, NULL);
        return true;
    }
    if (!json_is_integer(value))
        return false;
    errno = 0;
    long long number = strtoll(value->text, NULL, 10);
    if (errno != 0)
        return false;
    *ret_value = number;
    return true;
}

bool json_double(const struct json *value, double *ret_value)
{
    if (!json_is(value, JSON_NUMBER))
        return false;
    *ret_value = strtod(value->text, NULL); /* the program never leaves the C locale */
    return true;
}

bool json_bool(const struct json *value, bool otherwise)
{
    return json_is(value, JSON_TRUE) || (otherwise && !json_is(value, JSON_FALSE));
}
