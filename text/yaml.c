#include "text/yaml.h"

#include "base/text.h"
#include "text/regex.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

enum {
    /* Limits, in values of the document, on the values that all merges together look at: merges nest and name each
     * other, so the number can grow with the document's square, or without end. */
    MERGED_VALUES_RATIO = 8,
    MERGED_VALUES_CONSTANT = 1024,
    MAX_MERGE_DEPTH = 256,

    /* libyaml's time for an anchor, alias, directive or opening bracket grows with the number of the others. */
    MAX_ANCHORS = 128,
    MAX_DIRECTIVES = 16,
    MAX_DEPTH = 128,
};

/* The types of a plain scalar, in the order in which PyYAML tries them; any other scalar is a string. */
static const struct {
    enum yaml_type type;
    const char *pattern;
} scalar_types[] = {
    {YAML_BOOL, "yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"},
    {YAML_FLOAT, "[-+]?[0-9][0-9_]*\\.[0-9_]*(?:[eE][-+][0-9]+)?|\\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
                 "|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\\.[0-9_]*|[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN)"},
    {YAML_INTEGER, "[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+"
                   "|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"},
    {YAML_NULL, "~|null|Null|NULL|"},
    {YAML_DATE, "[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \\t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}"
                "(?:\\.[0-9]*)?(?:[ \\t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?"},
};
enum { N_SCALAR_TYPES = sizeof scalar_types / sizeof *scalar_types };

/* A document being turned into values: its nodes, and the values at the same indices. */
struct reading {
    struct arena *arena;
    size_t first_line;
    pcre2_code *patterns[N_SCALAR_TYPES];
    pcre2_match_data *match;
    yaml_document_t document;
    struct yaml_value *values;
};

static void reading_start(struct reading *reading)
{
    reading->match = regex_match_data(1);
    for (size_t i = 0; i < N_SCALAR_TYPES; i++)
        reading->patterns[i] = regex_compile(scalar_types[i].pattern, PCRE2_ZERO_TERMINATED,
                                             PCRE2_ANCHORED | PCRE2_ENDANCHORED, NULL, NULL);
}

static void reading_end(struct reading *reading)
{
    for (size_t i = 0; i < N_SCALAR_TYPES; i++)
        pcre2_code_free(reading->patterns[i]);
    pcre2_match_data_free(reading->match);
}

static enum yaml_type plain_type(const struct reading *reading, const char *text, size_t length)
{
    for (size_t i = 0; i < N_SCALAR_TYPES; i++)
        if (regex_match(reading->patterns[i], text, length, 0, 0, reading->match, NULL) >= 0)
            return scalar_types[i].type;
    return YAML_STRING;
}

/* Returns `digits` without underscores, which have no meaning. */
static char *without_underscores(struct arena *arena, const char *digits)
{
    char *text = arena_strdup(arena, digits), *out = text;
    for (const char *in = text; *in != 0; in++)
        if (*in != '_')
            *out++ = *in;
    *out = 0;
    return text;
}

/* Returns the base named by the prefix of the digits, and skips the prefix. */
static int take_base(const char **text)
{
    bool is_binary = text_starts_with(*text, "0b");
    if (is_binary || text_starts_with(*text, "0x")) {
        *text += 2;
        return is_binary ? 2 : 16;
    }
    return **text == '0' ? 8 : 10;
}

/* Reads a decimal number, a binary, octal or hexadecimal one by its prefix, and 1:30:00 in base 60. */
static int64_t integer_value(struct arena *arena, const char *written)
{
    const char *text = without_underscores(arena, written);
    bool negative = text[0] == '-';
    text += text[0] == '-' || text[0] == '+';
    int base = take_base(&text);
    int64_t value = 0;
    for (const char *field = text; field != NULL; field = strchr(field, ':')) {
        field += *field == ':';
        int64_t scaled, sum, part = strtoll(field, NULL, base);
        if (__builtin_mul_overflow(value, 60, &scaled) || __builtin_add_overflow(scaled, part, &sum))
            sum = INT64_MAX;
        value = sum;
    }
    return negative ? -value : value;
}

static double float_value(struct arena *arena, const char *written)
{
    const char *text = without_underscores(arena, written);
    bool negative = text[0] == '-';
    text += text[0] == '-' || text[0] == '+';
    if (strcasecmp(text, ".inf") == 0)
        return negative ? -INFINITY : INFINITY;
    if (strcasecmp(text, ".nan") == 0)
        return NAN;
    double value = 0;
    for (const char *field = text; field != NULL; field = strchr(field, ':')) {
        field += *field == ':';
        value = value * 60 + strtod(field, NULL);
    }
    return negative ? -value : value;
}

static void read_scalar(struct reading *reading, const yaml_node_t *node, struct yaml_value *value)
{
    const char *text = (const char *)node->data.scalar.value;
    size_t length = node->data.scalar.length;
    value->text = arena_strndup(reading->arena, text, length);
    bool plain =
        node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp((const char *)node->tag, YAML_STR_TAG) == 0;
    value->type = plain ? plain_type(reading, text, length) : YAML_STRING;
    if (value->type == YAML_BOOL)
        value->integer = strchr("yYtT", text[0]) != NULL || strcasecmp(text, "on") == 0;
    if (value->type == YAML_INTEGER)
        value->integer = integer_value(reading->arena, value->text);
    if (value->type == YAML_FLOAT)
        value->real = float_value(reading->arena, value->text);
}

static void read_list(struct reading *reading, const yaml_node_t *node, struct yaml_value *value)
{
    value->type = YAML_LIST;
    value->n_pairs = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
    value->pairs = arena_array(reading->arena, value->n_pairs, sizeof *value->pairs);
    for (size_t i = 0; i < value->n_pairs; i++)
        value->pairs[i].value = &reading->values[node->data.sequence.items.start[i] - 1];
}

static void read_mapping(struct reading *reading, const yaml_node_t *node, struct yaml_value *value)
{
    value->type = YAML_MAPPING;
    value->n_pairs = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
    value->pairs = arena_array(reading->arena, value->n_pairs, sizeof *value->pairs);
    for (size_t i = 0; i < value->n_pairs; i++) {
        yaml_node_pair_t pair = node->data.mapping.pairs.start[i];
        value->pairs[i] = (struct yaml_pair){&reading->values[pair.key - 1], &reading->values[pair.value - 1]};
    }
}

/* Reads all nodes of the document; the first is the root. */
static void read_nodes(struct reading *reading)
{
    const yaml_node_t *nodes = reading->document.nodes.start;
    size_t n_nodes = (size_t)(reading->document.nodes.top - nodes);
    reading->values = arena_array(reading->arena, n_nodes, sizeof *reading->values);
    for (size_t i = 0; i < n_nodes; i++) {
        reading->values[i].line = (uint32_t)(nodes[i].start_mark.line + reading->first_line);
        if (nodes[i].type == YAML_SCALAR_NODE)
            read_scalar(reading, &nodes[i], &reading->values[i]);
        else if (nodes[i].type == YAML_SEQUENCE_NODE)
            read_list(reading, &nodes[i], &reading->values[i]);
        else if (nodes[i].type == YAML_MAPPING_NODE)
            read_mapping(reading, &nodes[i], &reading->values[i]);
    }
}

static bool is_key(const struct yaml_value *key, const char *text)
{
    return key->type == YAML_STRING && strcmp(key->text, text) == 0;
}

static bool is_merge(const struct yaml_pair *pair)
{
    return is_key(pair->key, "<<");
}

struct lookup {
    const char *key; /* NULL: matches no key */
    uint64_t budget; /* values that may still be looked at */
    unsigned depth;
    bool exceeded;
};

static bool spend(struct lookup *lookup, uint64_t n_values)
{
    lookup->exceeded = lookup->exceeded || n_values > lookup->budget || lookup->depth > MAX_MERGE_DEPTH;
    lookup->budget -= lookup->exceeded ? 0 : n_values;
    return !lookup->exceeded;
}

static const struct yaml_value *find(const struct yaml_value *mapping, struct lookup *lookup);

static const struct yaml_value *find_merged(const struct yaml_value *merged, struct lookup *lookup)
{
    const struct yaml_value *found = NULL;
    if (merged->type == YAML_MAPPING)
        return find(merged, lookup);
    if (merged->type == YAML_LIST && spend(lookup, merged->n_pairs))
        for (size_t i = 0; found == NULL && i < merged->n_pairs; i++)
            found = find(merged->pairs[i].value, lookup);
    return found;
}

static const struct yaml_value *find(const struct yaml_value *mapping, struct lookup *lookup)
{
    const struct yaml_value *found = NULL;
    if (mapping->type != YAML_MAPPING || !spend(lookup, mapping->n_pairs + 1))
        return NULL;
    for (size_t i = mapping->n_pairs; lookup->key != NULL && i-- > 0;)
        if (is_key(mapping->pairs[i].key, lookup->key))
            return mapping->pairs[i].value;
    lookup->depth++;
    for (size_t i = mapping->n_pairs; found == NULL && i-- > 0;)
        if (is_merge(&mapping->pairs[i]))
            found = find_merged(mapping->pairs[i].value, lookup);
    lookup->depth--;
    return found;
}

static bool has_merge(const struct yaml_value *value)
{
    bool found = false;
    for (size_t i = 0; value->type == YAML_MAPPING && !found && i < value->n_pairs; i++)
        found = is_merge(&value->pairs[i]);
    return found;
}

/* Refuses merges whose lookups take more than linear time; keys may be looked up in any mapping. */
static bool check_merges(const struct reading *reading, struct error *error)
{
    const yaml_node_t *nodes = reading->document.nodes.start;
    size_t n_nodes = (size_t)(reading->document.nodes.top - nodes);
    struct lookup lookup = {.budget = (uint64_t)n_nodes * MERGED_VALUES_RATIO + MERGED_VALUES_CONSTANT};
    for (size_t i = 0; i < n_nodes && !lookup.exceeded; i++) {
        if (has_merge(&reading->values[i]))
            find(&reading->values[i], &lookup);
        if (lookup.exceeded)
            error_set(error,
                      "line %zu: merges (<<) form a circle or repeat more than %d times what is there; write the "
                      "keys out",
                      nodes[i].start_mark.line + reading->first_line, MERGED_VALUES_RATIO);
    }
    return !lookup.exceeded;
}

static void set_input(yaml_parser_t *parser, const struct yaml_text *text)
{
    yaml_parser_set_input_string(parser, (const unsigned char *)text->text, text->length);
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
}

static const char *too_much(const yaml_event_t *event, unsigned *depth, unsigned *n_anchors)
{
    const yaml_char_t *anchor = NULL;
    if (event->type == YAML_SCALAR_EVENT)
        anchor = event->data.scalar.anchor;
    else if (event->type == YAML_SEQUENCE_START_EVENT)
        anchor = event->data.sequence_start.anchor;
    else if (event->type == YAML_MAPPING_START_EVENT)
        anchor = event->data.mapping_start.anchor;
    if (anchor != NULL && ++*n_anchors > MAX_ANCHORS)
        return "too many anchors";
    *depth += event->type == YAML_SEQUENCE_START_EVENT || event->type == YAML_MAPPING_START_EVENT;
    *depth -= event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT;
    return *depth > MAX_DEPTH ? "nested too deep" : NULL;
}

static bool few_directives(const struct yaml_text *text)
{
    unsigned n_directives = 0;
    for (size_t at = 0; at < text->length; at++) {
        const char *newline = memchr(text->text + at, '\n', text->length - at);
        n_directives += text->text[at] == '%';
        at = newline != NULL ? (size_t)(newline - text->text) : text->length;
    }
    return n_directives <= MAX_DIRECTIVES;
}

/* Reports whether libyaml can make a document of the text in linear time, by its events, which it gives one by one.
 * Other faults of the text are reported when the document is made. */
static bool is_bounded(const struct yaml_text *text, struct error *error)
{
    yaml_parser_t parser;
    yaml_event_t event;
    unsigned depth = 0, n_anchors = 0;
    const char *reason = NULL;
    if (!few_directives(text))
        return error_set(error, "more than %d directives", MAX_DIRECTIVES);
    if (!yaml_parser_initialize(&parser))
        return error_set(error, "no memory for a YAML parser");
    set_input(&parser, text);
    for (bool ended = false; !ended && reason == NULL && yaml_parser_parse(&parser, &event);
         yaml_event_delete(&event)) {
        reason = too_much(&event, &depth, &n_anchors);
        ended = event.type == YAML_STREAM_END_EVENT;
    }
    if (reason != NULL)
        error_set(error, "line %zu: %s", parser.mark.line + text->first_line, reason);
    yaml_parser_delete(&parser);
    return reason == NULL;
}

/* Turns the loaded document into values, unless it is empty. */
static bool read_document(struct reading *reading, const struct yaml_value **ret_root, struct error *error)
{
    if (yaml_document_get_root_node(&reading->document) == NULL)
        return true;
    reading_start(reading);
    read_nodes(reading);
    reading_end(reading);
    *ret_root = &reading->values[0];
    return check_merges(reading, error);
}

static bool load(yaml_parser_t *parser, const struct yaml_text *text, yaml_document_t *document, struct error *error)
{
    return yaml_parser_load(parser, document) ||
           error_set(error, "line %zu: %s", parser->problem_mark.line + text->first_line,
                     parser->problem != NULL ? parser->problem : "not YAML");
}

/* Reports whether another document follows, valid or not. */
static bool is_followed(yaml_parser_t *parser)
{
    yaml_document_t next;
    if (!yaml_parser_load(parser, &next))
        return true;
    bool is_document = yaml_document_get_root_node(&next) != NULL;
    yaml_document_delete(&next);
    return is_document;
}

bool yaml_read(struct arena *arena, const struct yaml_text *text, const struct yaml_value **ret_root, bool *ret_more,
               struct error *error)
{
    yaml_parser_t parser;
    struct reading reading = {.arena = arena, .first_line = text->first_line};
    *ret_root = NULL;
    if (!is_bounded(text, error))
        return false;
    if (!yaml_parser_initialize(&parser))
        return error_set(error, "no memory for a YAML parser");
    set_input(&parser, text);
    bool is_read = load(&parser, text, &reading.document, error);
    if (is_read) {
        is_read = read_document(&reading, ret_root, error);
        yaml_document_delete(&reading.document);
        *ret_more = *ret_root != NULL && is_followed(&parser);
    }
    yaml_parser_delete(&parser);
    return is_read;
}

const struct yaml_value *yaml_get(const struct yaml_value *mapping, const char *key)
{
    struct lookup lookup = {.key = key, .budget = UINT64_MAX};
    return mapping == NULL ? NULL : find(mapping, &lookup);
}

bool yaml_is_false(const struct yaml_value *value)
{
    switch (value->type) {
    case YAML_NULL:
        return true;
    case YAML_BOOL:
    case YAML_INTEGER:
        return value->integer == 0;
    case YAML_FLOAT:
        return value->real == 0;
    case YAML_STRING:
        return value->text[0] == 0;
    case YAML_LIST:
    case YAML_MAPPING:
        return value->n_pairs == 0;
    default:
        return false;
    }
}
