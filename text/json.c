#include "text/json.h"

#include "base/arena.h"
#include "base/text.h"
#include "base/text_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

enum { INDEXED_MEMBERS = 9 }; /* objects with so many members get an index; smaller ones are searched in order */

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

struct parser {
    struct json_document *document;
    const char *original; /* NULL: gone, so that lines are unknown */
    bool is_python, root_repeats;
    size_t room;       /* in bytes, for yyjson's values */
    size_t lacking;    /* bytes of memory that were not available */
    bool has_too_many; /* values */
    struct error *error;
};

/* Lines. */

/* Reports whether a byte of valid JSON is between tokens, where a token is a key, a value or an opening bracket. */
static bool is_between(char byte)
{
    return memchr(" \t\r\n,:]}", byte, 8) != NULL;
}

static size_t token_end(const char *text, size_t length, size_t at)
{
    char first = text[at++];
    if (first == '[' || first == '{')
        return at;
    if (first != '"') {
        while (at < length && !is_between(text[at]))
            at++;
        return at;
    }
    while (text[at] != '"')
        at += text[at] == '\\' ? 2 : 1;
    return at + 1;
}

/* Returns the line of a value of valid JSON: that of its token. */
static unsigned line_of_value(const char *text, size_t length, const struct json *root, const struct json *value)
{
    unsigned line = 1;
    for (size_t at = 0; at < length;) {
        if (is_between(text[at])) {
            line += text[at++] == '\n';
            continue;
        }
        if (root++ == value)
            break;
        at = token_end(text, length, at);
    }
    return line;
}

static unsigned line_of_offset(const char *text, size_t offset)
{
    unsigned line = 1;
    for (size_t i = 0; i < offset; i++)
        line += text[i] == '\n';
    return line;
}

static struct json *root_of(const struct json_document *document)
{
    return (struct json *)yyjson_doc_get_root(document->parsed);
}

/* Adds the line to the reason, if it can be known. Returns false. */
static bool blame(const struct parser *parser, const struct json *value)
{
    const struct json_document *document = parser->document;
    if (parser->original == NULL)
        return false;
    return error_prefix(parser->error, "line %u",
                        line_of_value(parser->original, document->length, root_of(document), value));
}

/* Values. */

static enum json_type type_of(const struct json *value)
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
static size_t length_of(const struct json *value)
{
    return (uint32_t)(value->of.tag >> YYJSON_TAG_BIT);
}

static bool has_mark(const struct json *value, uint64_t mark)
{
    return (value->of.tag & mark) != 0;
}

static const char *text_of(const struct json *value)
{
    return value->of.uni.str;
}

static const struct json *key_of(const struct json *member)
{
    return member - 1;
}

static const struct index *index_of(const struct json *object)
{
    return object->of.uni.ptr;
}

/* Returns the first value in an array or object, or NULL. */
static const struct json *first_value(const struct json *container)
{
    if (length_of(container) == 0)
        return NULL;
    return container + (type_of(container) == JSON_OBJECT ? 2 : 1);
}

static size_t size_of(const struct json *value)
{
    enum json_type type = type_of(value);
    if (type == JSON_OBJECT && has_mark(value, INDEXED))
        return index_of(value)->size;
    return type >= JSON_ARRAY ? value->of.uni.ofs : sizeof *value;
}

static const struct json *next_value(const struct json *value)
{
    if (has_mark(value, LAST))
        return NULL;
    const struct json *next = (const struct json *)((const char *)value + size_of(value));
    return has_mark(value, MEMBER) ? next + 1 : next;
}

static bool has_key(const struct json *member, const char *key, size_t length)
{
    return length_of(key_of(member)) == length && memcmp(text_of(key_of(member)), key, length) == 0;
}

/* Checks that yyjson does not make. */

static bool refuse_duplicate(const struct parser *parser, const struct json *member)
{
    error_set(parser->error, "key '%.200s' appears twice in one object", text_of(key_of(member)));
    return blame(parser, member);
}

static uint32_t half_of(uint64_t hash)
{
    return (uint32_t)(hash >> 32);
}

/* Returns the slot of a key with that hash, or the empty slot where it belongs. */
static size_t find_slot(const struct json *object, const struct index *index, const char *key, size_t length,
                        uint64_t hash)
{
    for (size_t at = (size_t)hash;; at++) {
        at &= index->n_slots - 1;
        struct slot slot = index->slots[at];
        if (slot.place == 0 || (slot.half == half_of(hash) && has_key(object + slot.place, key, length)))
            return at;
    }
}

/* Adds a member to the index. */
static bool add_to_index(const struct parser *parser, const struct json *object, struct index *index,
                         const struct json *member, uint64_t hash)
{
    size_t at = find_slot(object, index, text_of(key_of(member)), length_of(key_of(member)), hash);
    if (index->slots[at].place != 0)
        return refuse_duplicate(parser, member);
    index->slots[at] = (struct slot){(uint32_t)(member - object), half_of(hash)};
    return true;
}

/* Adds all members to the index: some at a time, so that the memory of their slots arrives meanwhile. */
static bool fill_index(const struct parser *parser, const struct json *object, struct index *index)
{
    enum { AT_ONCE = 16 };
    const struct json *members[AT_ONCE], *member = first_value(object);
    uint64_t hashes[AT_ONCE];
    while (member != NULL) {
        size_t n = 0;
        for (; member != NULL && n < AT_ONCE; member = next_value(member), n++) {
            members[n] = member;
            hashes[n] = text_hash(text_of(key_of(member)), length_of(key_of(member)));
            __builtin_prefetch(&index->slots[hashes[n] & (index->n_slots - 1)], 1);
        }
        for (size_t i = 0; i < n; i++)
            if (!add_to_index(parser, object, index, members[i], hashes[i]))
                return false;
    }
    return true;
}

static bool make_index(const struct parser *parser, struct json *object)
{
    size_t n_slots = 2 * INDEXED_MEMBERS - 2;
    while (n_slots < 2 * length_of(object))
        n_slots *= 2;
    struct index *index = arena_alloc(parser->document->arena, sizeof *index + n_slots * sizeof *index->slots);
    index->n_slots = n_slots;
    index->size = object->of.uni.ofs;
    if (!fill_index(parser, object, index))
        return false;
    object->of.uni.ptr = index;
    object->of.tag |= INDEXED;
    return true;
}

/* Checks that no key of a complete object appears twice. */
static bool check_keys(const struct parser *parser, struct json *object)
{
    if (parser->root_repeats && object == root_of(parser->document))
        return true;
    if (length_of(object) >= INDEXED_MEMBERS)
        return make_index(parser, object);
    for (const struct json *member = first_value(object); member != NULL; member = next_value(member))
        for (const struct json *other = first_value(object); other != member; other = next_value(other))
            if (has_key(other, text_of(key_of(member)), length_of(key_of(member))))
                return refuse_duplicate(parser, member);
    return true;
}

/* Spells Infinity as a number, and marks whole numbers that are spelled as floats: 2048.0. */
static bool take_python(const struct parser *parser, struct json *number)
{
    char *whole = parser->document->text;
    static const char infinity[] = "Infinity", spelling[] = "1e999999"; /* of equal length */
    const double most = 9007199254740992.0;                             /* 2^53: doubles are exact up to here */
    char *text = whole + (text_of(number) - whole), *digits = text + (*text == '-');
    size_t n_digits = 0;
    while (digits[n_digits] >= '0' && digits[n_digits] <= '9')
        n_digits++;
    if (digits[n_digits] == '\0') /* an integer, as most are */
        return true;
    if (*digits > '9' && strcmp(digits, infinity) != 0) {
        error_set(parser->error, "invalid JSON: '%s' is not a number", text);
        return blame(parser, number);
    }
    if (*digits > '9')
        memcpy(digits, spelling, strlen(spelling));
    double value = strtod(text, NULL);
    if (value >= -most && value <= most && value == (double)(int64_t)value)
        number->of.tag |= WHOLE;
    return true;
}

struct open_container {
    struct json *container;
    size_t n_left; /* values to come */
};

struct walk {
    const struct parser *parser;
    struct json *at; /* the last value that was checked */
    struct open_container open[JSON_MAX_DEPTH];
    unsigned depth;
    size_t n_values; /* with those to come in open containers */
};

static bool open_container(struct walk *walk, struct json *container)
{
    const struct parser *parser = walk->parser;
    if (walk->depth == JSON_MAX_DEPTH) {
        error_set(parser->error, "nested more than %d deep", JSON_MAX_DEPTH);
        return blame(parser, container);
    }
    walk->n_values += length_of(container);
    if (walk->n_values > JSON_MAX_VALUES)
        return error_set(parser->error, "more than %d values", JSON_MAX_VALUES);
    walk->open[walk->depth++] = (struct open_container){container, length_of(container)};
    return true;
}

static bool check_value(struct walk *walk, struct json *value)
{
    walk->at = value;
    switch (value->of.tag & YYJSON_TYPE_MASK) {
    case YYJSON_TYPE_RAW:
        return !walk->parser->is_python || take_python(walk->parser, value);
    case YYJSON_TYPE_ARR:
    case YYJSON_TYPE_OBJ:
        return open_container(walk, value);
    default:
        return true;
    }
}

/* Marks and checks what is left of the innermost container, up to the next one in it. */
static bool check_inner(struct walk *walk, bool is_object)
{
    struct open_container *inner = &walk->open[walk->depth - 1];
    struct json *value = walk->at;
    unsigned depth = walk->depth;
    do {
        value += is_object ? 2 : 1;
        value->of.tag |= (is_object ? MEMBER : 0) | (--inner->n_left == 0 ? LAST : 0);
        if (!check_value(walk, value))
            return false;
    } while (inner->n_left > 0 && walk->depth == depth);
    return true;
}

/* Passes over all values, in the order of the text, and marks them. */
static bool check_values(const struct parser *parser)
{
    struct walk walk = {.parser = parser, .n_values = 1};
    struct json *root = root_of(parser->document);
    root->of.tag |= LAST | ROOT;
    bool good = check_value(&walk, root);
    while (good && walk.depth > 0) {
        const struct open_container *inner = &walk.open[walk.depth - 1];
        bool is_object = type_of(inner->container) == JSON_OBJECT;
        if (inner->n_left > 0) {
            good = check_inner(&walk, is_object);
        } else {
            walk.depth--;
            good = !is_object || check_keys(parser, inner->container);
        }
    }
    return good;
}

/* Memory for yyjson, which frees what it has and fails if there is none: no frame of its is jumped over. */

static void *keep_result(struct parser *parser, void *memory, size_t size)
{
    if (memory == NULL)
        parser->lacking = size;
    return memory;
}

/* Takes more than yyjson asks for first, which it lets grow by half: what it does not use costs nothing, and a copy of
 * so many values takes as long as a tenth of the parsing. */
static void *allocate(void *context, size_t size)
{
    struct parser *parser = context;
    parser->room = size + size / 2;
    return keep_result(parser, memory_try(NULL, parser->room), parser->room);
}

static void *reallocate(void *context, void *memory, size_t old_size, size_t size)
{
    struct parser *parser = context;
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

static bool refuse_text(const struct parser *parser, const yyjson_read_err *fault)
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

/* Lets a root that holds values lead to its document. */
static void link_root(struct json_document *document)
{
    struct json *root = root_of(document);
    if (has_mark(root, INDEXED))
        ((struct index *)root->of.uni.ptr)->document = document;
    else if (type_of(root) >= JSON_ARRAY)
        root->of.uni.ptr = document;
}

/* Parses the text of the parser's document in place. */
static bool run(struct parser *parser)
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
    if (!check_values(parser))
        return false;
    link_root(document);
    return true;
}

static struct json_document *new_document(size_t length)
{
    struct json_document *document = memory_alloc(sizeof *document);
    *document = (struct json_document){
        .text = memory_alloc(length + YYJSON_PADDING_SIZE), .length = length, .arena = arena_new()};
    return document;
}

static struct json_document *finish(struct parser *parser)
{
    if (run(parser))
        return parser->document;
    json_free(parser->document);
    return NULL;
}

/* Parses by the rules of `parser`, beside the text, in which an error finds its line. */
static struct json_document *parse_copy(const char *text, size_t length, struct parser parser)
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
    return parse_copy(text, length, (struct parser){.error = error});
}

struct json_document *json_parse_python(const char *text, size_t length, struct error *error)
{
    return parse_copy(text, length, (struct parser){.error = error, .is_python = true});
}

/* Reads the text again, and parses beside it. */
static struct json_document *read_again(json_read_text *read, void *context, size_t length, struct parser rules)
{
    char *text = memory_alloc(length);
    struct json_document *document = read(context, text, length, rules.error) ? parse_copy(text, length, rules) : NULL;
    free(text);
    return document;
}

/* Parses a long text in the memory that it is read into. */
static struct json_document *read_text(json_read_text *read, void *context, size_t length, struct parser parser)
{
    const struct parser rules = parser;
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
    return read_text(read, context, length, (struct parser){.error = error, .is_python = true});
}

bool json_read_members(json_read_text *read, void *context, size_t length, json_take_member *take, struct error *error)
{
    struct json_document *document =
        read_text(read, context, length, (struct parser){.error = error, .root_repeats = true});
    bool good = document != NULL;
    if (good && type_of(root_of(document)) != JSON_OBJECT)
        good = error_set(error, "not a JSON object");
    for (struct json_member member = {0}; good && json_next_member(root_of(document), &member);)
        good = take(context, &member, error);
    json_free(document);
    return good;
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
    return document->original != NULL ? line_of_value(document->original, document->length, root, value) : 0;
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

const struct json *json_get(const struct json *object, const char *key)
{
    return json_get_n(object, key, strlen(key));
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
