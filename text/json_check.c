/* What JSON needs beyond yyjson's checks: no key twice, limits of depth and number, numbers as Python spells them. */
#include "text/json_value.h"

#include "base/text_index.h"

#include <stdlib.h>

enum { INDEXED_MEMBERS = 9 }; /* objects with so many members get an index; smaller ones are searched in order */

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

unsigned json_line_of_value(const char *text, size_t length, const struct json *root, const struct json *value)
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

/* Adds the line to the reason, if it can be known. Returns false. */
static bool blame(const struct json_parser *parser, const struct json *value)
{
    const struct json_document *document = parser->document;
    if (parser->original == NULL)
        return false;
    return error_prefix(parser->error, "line %u",
                        json_line_of_value(parser->original, document->length, root_of(document), value));
}

static bool refuse_duplicate(const struct json_parser *parser, const struct json *member)
{
    error_set(parser->error, "key '%.200s' appears twice in one object", text_of(key_of(member)));
    return blame(parser, member);
}

/* Adds a member to the index. */
static bool add_to_index(const struct json_parser *parser, const struct json *object, struct index *index,
                         const struct json *member, uint64_t hash)
{
    size_t at = find_slot(object, index, text_of(key_of(member)), length_of(key_of(member)), hash);
    if (index->slots[at].place != 0)
        return refuse_duplicate(parser, member);
    index->slots[at] = (struct slot){(uint32_t)(member - object), half_of(hash)};
    return true;
}

/* Adds all members to the index: some at a time, so that the memory of their slots arrives meanwhile. */
static bool fill_index(const struct json_parser *parser, const struct json *object, struct index *index)
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

static bool make_index(const struct json_parser *parser, struct json *object)
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
static bool check_keys(const struct json_parser *parser, struct json *object)
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
static bool take_python(const struct json_parser *parser, struct json *number)
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
    const struct json_parser *parser;
    struct json *at; /* the last value that was checked */
    struct open_container open[JSON_MAX_DEPTH];
    unsigned depth;
    size_t n_values; /* with those to come in open containers */
};

static bool open_container(struct walk *walk, struct json *container)
{
    const struct json_parser *parser = walk->parser;
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

/* Lets a root that holds values lead to its document. */
static void link_root(struct json_document *document)
{
    struct json *root = root_of(document);
    if (has_mark(root, INDEXED))
        ((struct index *)root->of.uni.ptr)->document = document;
    else if (type_of(root) >= JSON_ARRAY)
        root->of.uni.ptr = document;
}

bool json_check_values(const struct json_parser *parser)
{
    struct walk walk; /* its containers are set as they are opened */
    walk.parser = parser;
    walk.depth = 0;
    walk.n_values = 1;
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
    if (good)
        link_root(parser->document);
    return good;
}
