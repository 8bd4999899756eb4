#include "base/text_index.h"
#include "text/json_value.h"

#include <errno.h>
#include <stdlib.h>

static unsigned line_of_offset(const char *text, size_t offset)
{
    unsigned line = 1;
    for (size_t i = 0; i < offset; i++)
        line += text[i] == '\n';
    return line;
}

/* Memory for yyjson, which frees what it has and fails if there is none: no frame of its is jumped over. */

static void *keep_result(struct json_parser *parser, void *memory, size_t size)
{
    if (memory == NULL)
        parser->lacking = size;
    return memory;
}

/* Takes more than yyjson asks for first, which it lets grow by half: what it does not use costs nothing, and a copy of
 * so many values takes as long as a tenth of the parsing. */
static void *allocate(void *context, size_t size)
{
    struct json_parser *parser = context;
    parser->room = size + size / 2;
    return keep_result(parser, memory_try(NULL, parser->room), parser->room);
}

static void *reallocate(void *context, void *memory, size_t old_size, size_t size)
{
    struct json_parser *parser = context;
    parser->has_too_many =
        size / sizeof(yyjson_val) > 3 * (size_t)JSON_MAX_VALUES; /* keys count here, and spare room */
    if (parser->has_too_many || size <= parser->room)
        return parser->has_too_many ? NULL : memory;
    parser->room = size;
    return keep_result(parser, memory_try(memory, size), size);
}

static void release(void *context, void *memory)
{
    free(memory);
}

static bool refuse_text(const struct json_parser *parser, const yyjson_read_err *fault)
{
    if (parser->lacking != 0)
        memory_exhausted(parser->lacking);
    if (parser->has_too_many)
        return error_set(parser->error, "more than %d values", JSON_MAX_VALUES);
    if (parser->original == NULL)
        return false;
    return error_set(parser->error, "line %u: invalid JSON at offset %zu: %s",
                     line_of_offset(parser->original, fault->pos), fault->pos,
                     parser->document->length > 0 ? fault->msg : "unexpected end of data");
}

/* Parses the text of the parser's document in place. */
static bool run(struct json_parser *parser)
{
    struct json_document *document = parser->document;
    const yyjson_alc memory = {allocate, reallocate, release, parser};
    const yyjson_read_flag flags =
        YYJSON_READ_INSITU | YYJSON_READ_NUMBER_AS_RAW | (parser->is_python ? YYJSON_READ_ALLOW_INF_AND_NAN : 0);
    yyjson_read_err fault;
    if (document->length > UINT32_MAX / 2)
        return error_set(parser->error, "JSON too large: %zu bytes", document->length);
    memset(document->text + document->length, 0, YYJSON_PADDING_SIZE);
    document->parsed = yyjson_read_opts(document->text, document->length, flags, &memory, &fault);
    if (document->parsed == NULL)
        return refuse_text(parser, &fault);
    return json_check_values(parser);
}

static struct json_document *new_document(size_t length)
{
    struct json_document *document = memory_alloc(sizeof *document);
    *document = (struct json_document){
        .text = memory_alloc(length + YYJSON_PADDING_SIZE), .length = length, .arena = arena_new()};
    return document;
}

static struct json_document *finish(struct json_parser *parser)
{
    if (run(parser))
        return parser->document;
    json_free(parser->document);
    return NULL;
}

/* Parses by the rules of `parser`, beside the text, in which an error finds its line. */
static struct json_document *parse_copy(const char *text, size_t length, struct json_parser parser)
{
    struct json_document *document = parser.document = new_document(length);
    parser.original = text;
    memcpy(document->text, text, length);
    if (length <= JSON_LINED)
        document->original = memcpy(memory_alloc(length), text, length);
    return finish(&parser);
}

struct json_document *json_parse(const char *text, size_t length, struct error *error)
{
    return parse_copy(text, length, (struct json_parser){.error = error});
}

struct json_document *json_parse_python(const char *text, size_t length, struct error *error)
{
    return parse_copy(text, length, (struct json_parser){.error = error, .is_python = true});
}

/* Reads the text again, and parses beside it. */
static struct json_document *read_again(json_read_text *read, void *context, size_t length, struct json_parser rules)
{
    char *text = memory_alloc(length);
    struct json_document *document = read(context, text, length, rules.error) ? parse_copy(text, length, rules) : NULL;
    free(text);
    return document;
}

/* Parses a long text in the memory that it is read into. */
static struct json_document *read_text(json_read_text *read, void *context, size_t length, struct json_parser parser)
{
    const struct json_parser rules = parser;
    if (length <= JSON_LINED)
        return read_again(read, context, length, rules);
    parser.document = new_document(length);
    if (!read(context, parser.document->text, length, parser.error)) {
        json_free(parser.document);
        return NULL;
    }
    struct json_document *document = finish(&parser);
    return document != NULL ? document : read_again(read, context, length, rules);
}

struct json_document *json_read_python(json_read_text *read, void *context, size_t length, struct error *error)
{
    return read_text(read, context, length, (struct json_parser){.error = error, .is_python = true});
}

struct json_document *json_read_repeating(json_read_text *read, void *context, size_t length, struct error *error)
{
    return read_text(read, context, length, (struct json_parser){.error = error, .root_repeats = true});
}

void json_free(struct json_document *document)
{
    if (document == NULL)
        return;
    yyjson_doc_free(document->parsed);
    free(document->text);
    free(document->original);
    arena_free(document->arena);
    free(document);
}

/* What values of a document hold. */

const struct json *json_root(const struct json_document *document)
{
    return root_of(document);
}

unsigned json_line(const struct json *value)
{
    const struct json *root = value;
    if (value == NULL)
        return 0;
    while (!has_mark(root, ROOT))
        root--;
    if (type_of(root) < JSON_ARRAY)
        return 1;
    const struct json_document *document = has_mark(root, INDEXED) ? index_of(root)->document : root->of.uni.ptr;
    return document->original != NULL ? json_line_of_value(document->original, document->length, root, value) : 0;
}

enum json_type json_type(const struct json *value)
{
    return value != NULL ? type_of(value) : JSON_NULL;
}

bool json_is(const struct json *value, enum json_type type)
{
    return value != NULL && type_of(value) == type;
}

size_t json_count(const struct json *array)
{
    return json_is(array, JSON_ARRAY) ? length_of(array) : 0;
}

const struct json *json_first(const struct json *array)
{
    return json_is(array, JSON_ARRAY) ? first_value(array) : NULL;
}

const struct json *json_next(const struct json *element)
{
    return element != NULL && !has_mark(element, MEMBER) ? next_value(element) : NULL;
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
    return json_is(object, JSON_OBJECT) ? length_of(object) : 0;
}

bool json_next_member(const struct json *object, struct json_member *member)
{
    if (!json_is(object, JSON_OBJECT))
        return false;
    const struct json *next = member->value == NULL ? first_value(object) : next_value(member->value);
    if (next == NULL)
        return false;
    *member = (struct json_member){text_of(key_of(next)), length_of(key_of(next)), next};
    return true;
}

const struct json *json_get_n(const struct json *object, const char *key, size_t key_length)
{
    if (!json_is(object, JSON_OBJECT))
        return NULL;
    if (has_mark(object, INDEXED)) {
        const struct index *index = index_of(object);
        size_t at = find_slot(object, index, key, key_length, text_hash(key, key_length));
        return index->slots[at].place != 0 ? object + index->slots[at].place : NULL;
    }
    const struct json *member = first_value(object);
    while (member != NULL && !has_key(member, key, key_length))
        member = next_value(member);
    return member;
}

const char *json_string(const struct json *value, size_t *ret_length)
{
    if (!json_is(value, JSON_STRING))
        return NULL;
    if (ret_length != NULL)
        *ret_length = length_of(value);
    return text_of(value);
}

static struct json_text string_of(const struct json *value)
{
    if (type_of(value) != JSON_STRING)
        return (struct json_text){NULL, 0};
    return (struct json_text){text_of(value), length_of(value)};
}

void json_string_pair(const struct json *array, struct json_text ret_pair[2])
{
    const struct json *first = json_first(array), *second = first != NULL ? next_value(first) : NULL;
    ret_pair[0] = first != NULL ? string_of(first) : (struct json_text){NULL, 0};
    ret_pair[1] = second != NULL ? string_of(second) : (struct json_text){NULL, 0};
}

bool json_string_is(const struct json *value, const char *text)
{
    size_t length;
    const char *string = json_string(value, &length);
    return string != NULL && length == strlen(text) && memcmp(string, text, length) == 0;
}

const char *json_number_text(const struct json *value)
{
    return json_is(value, JSON_NUMBER) ? text_of(value) : NULL;
}

bool json_is_integer(const struct json *value)
{
    return json_is(value, JSON_NUMBER) && strpbrk(text_of(value), ".eE") == NULL;
}

static bool is_whole(const struct json *value)
{
    return json_is(value, JSON_NUMBER) && has_mark(value, WHOLE);
}

bool json_u64(const struct json *value, uint64_t *ret_value)
{
    if (is_whole(value) && *text_of(value) != '-') {
        *ret_value = (uint64_t)strtod(text_of(value), NULL);
        return true;
    }
    if (!json_is(value, JSON_NUMBER))
        return false;
    uint64_t number = 0;
    for (const char *at = text_of(value); *at != '\0'; at++) {
        uint64_t digit = (uint64_t)*at - '0';
        if (digit > 9 || __builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, digit, &number))
            return false;
    }
    *ret_value = number;
    return true;
}

bool json_i64(const struct json *value, int64_t *ret_value)
{
    if (is_whole(value)) {
        *ret_value = (int64_t)strtod(text_of(value), NULL);
        return true;
    }
    if (!json_is_integer(value))
        return false;
    errno = 0;
    long long number = strtoll(text_of(value), NULL, 10);
    if (errno != 0)
        return false;
    *ret_value = number;
    return true;
}

bool json_double(const struct json *value, double *ret_value)
{
    if (!json_is(value, JSON_NUMBER))
        return false;
    *ret_value = strtod(text_of(value), NULL); /* the program never leaves the C locale */
    return true;
}

bool json_bool(const struct json *value, bool otherwise)
{
    return json_is(value, JSON_TRUE) || (otherwise && !json_is(value, JSON_FALSE));
}
