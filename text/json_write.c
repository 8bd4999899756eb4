#include "text/json_write.h"

#include "base/arena.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of a nesting level. */
enum { IS_OBJECT = 1, HAS_MEMBERS = 2, KEEPS_LINE = 4 };

static unsigned char *innermost(struct json_writer *writer)
{
    return &writer->levels[writer->depth - 1];
}

static void new_line(struct json_writer *writer)
{
    static const char blanks[] = "        ";
    unsigned width = writer->width != 0 ? writer->width : 2;
    assert(width < sizeof blanks);
    buffer_append(writer->out, "\n", 1);
    for (unsigned i = 0; i < writer->indent + writer->depth; i++)
        buffer_append(writer->out, blanks, width);
}

/* Writes the separator before a member or an element. */
static void separate(struct json_writer *writer)
{
    unsigned char *level = innermost(writer);
    bool is_first = !(*level & HAS_MEMBERS);
    *level |= HAS_MEMBERS;
    if (!is_first)
        buffer_append(writer->out, ",", 1);
    if (*level & KEEPS_LINE)
        buffer_append(writer->out, " ", is_first ? 0 : 1);
    else if (!writer->compact)
        new_line(writer);
    else if (writer->break_line)
        buffer_append(writer->out, "\n", 1);
    writer->break_line = false;
}

void json_put_key(struct json_writer *writer, const char *key, size_t length)
{
    separate(writer);
    buffer_append_json_text(writer->out, key, length, writer->letters);
    buffer_append(writer->out, ": ", writer->compact ? 1 : 2);
    writer->has_key = true;
}

/* Writes the separator and the key before a value. */
static void begin(struct json_writer *writer, const char *key)
{
    if (writer->depth > 0 && !writer->has_key && key != NULL && (*innermost(writer) & IS_OBJECT))
        json_put_key(writer, key, strlen(key));
    else if (writer->depth > 0 && !writer->has_key)
        separate(writer);
    writer->has_key = false;
}

static void open_bracket(struct json_writer *writer, const char *key, bool is_object)
{
    begin(writer, key);
    assert(writer->depth < JSON_WRITER_DEPTH);
    unsigned char outer = writer->depth > 0 ? *innermost(writer) : 0;
    buffer_append(writer->out, is_object ? "{" : "[", 1);
    writer->levels[writer->depth++] = (unsigned char)((outer & KEEPS_LINE) | (is_object ? IS_OBJECT : 0));
}

void json_begin_object(struct json_writer *writer, const char *key)
{
    open_bracket(writer, key, true);
}

void json_begin_array(struct json_writer *writer, const char *key)
{
    open_bracket(writer, key, false);
}

void json_end(struct json_writer *writer)
{
    unsigned char level = writer->levels[--writer->depth];
    if ((level & HAS_MEMBERS) && !(level & KEEPS_LINE) && !writer->compact)
        new_line(writer);
    buffer_append(writer->out, level & IS_OBJECT ? "}" : "]", 1);
}

void json_keep_line(struct json_writer *writer)
{
    *innermost(writer) |= KEEPS_LINE;
}

struct json_mark json_mark(const struct json_writer *writer)
{
    unsigned char level = writer->depth > 0 ? writer->levels[writer->depth - 1] : 0;
    return (struct json_mark){writer->out->length, writer->depth, level, writer->has_key};
}

void json_take_back(struct json_writer *writer, struct json_mark mark)
{
    writer->out->length = mark.length;
    writer->depth = mark.depth;
    writer->has_key = mark.has_key;
    if (mark.depth > 0)
        *innermost(writer) = mark.level;
}

void json_break_line(struct json_writer *writer)
{
    writer->break_line = true;
}

void json_put_text(struct json_writer *writer, const char *key, const char *text)
{
    if (text != NULL)
        json_put_text_n(writer, key, text, strlen(text));
    else
        json_put_null(writer, key);
}

void json_put_text_n(struct json_writer *writer, const char *key, const char *text, size_t length)
{
    begin(writer, key);
    buffer_append_json_text(writer->out, text, length, writer->letters);
}

void json_put_number(struct json_writer *writer, const char *key, uint64_t number)
{
    begin(writer, key);
    buffer_append_decimal(writer->out, number);
}

void json_put_i64(struct json_writer *writer, const char *key, int64_t number)
{
    begin(writer, key);
    buffer_printf(writer->out, "%" PRId64, number);
}

void json_put_bool(struct json_writer *writer, const char *key, bool value)
{
    json_put_raw(writer, key, value ? "true" : "false");
}

void json_put_null(struct json_writer *writer, const char *key)
{
    json_put_raw(writer, key, "null");
}

void json_put_raw(struct json_writer *writer, const char *key, const char *text)
{
    begin(writer, key);
    buffer_append_text(writer->out, text);
}

static void put_argument(struct json_writer *writer, char kind, va_list *arguments)
{
    const char *text;
    if (kind == 'u')
        json_put_number(writer, NULL, va_arg(*arguments, uint64_t));
    else if (kind == 'b')
        json_put_bool(writer, NULL, va_arg(*arguments, int));
    else if (text = va_arg(*arguments, const char *), kind == 's')
        json_put_text(writer, NULL, text);
    else if (kind == 't')
        json_put_text_n(writer, NULL, text, va_arg(*arguments, size_t));
    else
        json_put_raw(writer, NULL, text);
}

/* Puts the key or the value at the beginning of a template, or closes a bracket; returns its length. */
static size_t put_token(struct json_writer *writer, const char *template, va_list *arguments)
{
    size_t length = strcspn(template, " ,:]}");
    switch (*template) {
    case '{':
    case '[':
        open_bracket(writer, NULL, *template == '{');
        return 1;
    case '}':
    case ']':
        json_end(writer);
        return 1;
    case '\n':
        json_break_line(writer);
        return 1;
    case '%':
        put_argument(writer, template[1], arguments);
        return 2;
    case '\'':
        length = strcspn(template + 1, "'") + 2;
        if (template[length] == ':')
            json_put_key(writer, template + 1, length - 2);
        else
            json_put_text_n(writer, NULL, template + 1, length - 2);
        return length;
    default: /* a number, true, false or null */
        begin(writer, NULL);
        buffer_append(writer->out, template, length);
        return length;
    }
}

void json_put_template(struct json_writer *writer, const char *template, ...)
{
    va_list arguments;
    va_start(arguments, template);
    while (*(template += strspn(template, " ,:")) != '\0')
        template += put_token(writer, template, &arguments);
    va_end(arguments);
}

static void put_scalar(struct json_writer *writer, const struct json *value)
{
    static const char *const words[] = {[JSON_NULL] = "null", [JSON_FALSE] = "false", [JSON_TRUE] = "true"};
    size_t length;
    const char *text = json_string(value, &length);
    if (text != NULL)
        json_put_text_n(writer, NULL, text, length);
    else
        json_put_raw(writer, NULL, json_is(value, JSON_NUMBER) ? json_number_text(value) : words[json_type(value)]);
}

/* Recurses as deep as the document, at most JSON_MAX_DEPTH. */
static void put_edited(struct json_writer *writer, const struct json *value, json_edit *edit, void *context,
                       unsigned depth)
{
    bool is_object = json_is(value, JSON_OBJECT);
    if (!is_object && !json_is(value, JSON_ARRAY)) {
        put_scalar(writer, value);
        return;
    }
    open_bracket(writer, NULL, is_object);
    for (const struct json *element = json_first(value); element != NULL; element = json_next(element))
        put_edited(writer, element, edit, context, depth + 1);
    for (struct json_member member = {0}; json_next_member(value, &member);)
        if (edit == NULL || !edit(context, writer, &member, depth)) {
            json_put_key(writer, member.key, member.key_length);
            put_edited(writer, member.value, edit, context, depth + 1);
        }
    json_end(writer);
}

void json_put_edited(struct json_writer *writer, const struct json *value, json_edit *edit, void *context)
{
    put_edited(writer, value, edit, context, 1);
}

static int compare_members(const void *a, const void *b)
{
    const struct json_member *x = a, *y = b;
    size_t shorter = x->key_length < y->key_length ? x->key_length : y->key_length;
    int order = memcmp(x->key, y->key, shorter);
    return order != 0 ? order : (x->key_length > y->key_length) - (x->key_length < y->key_length);
}

/* Returns the members of `value` that `more` lacks, and those of `more`, sorted; the caller frees them. */
static struct json_member *sorted_members(const struct json *value, const struct json *more, size_t *ret_n)
{
    size_t n = 0;
    struct json_member *members =
        memory_alloc((json_count_members(value) + json_count_members(more) + 1) * sizeof *members);
    for (struct json_member member = {0}; json_next_member(value, &member);)
        if (json_get_n(more, member.key, member.key_length) == NULL)
            members[n++] = member;
    for (struct json_member member = {0}; json_next_member(more, &member);)
        members[n++] = member;
    qsort(members, n, sizeof *members, compare_members);
    *ret_n = n;
    return members;
}

/* An integer keeps its digits, but for the sign of zero. */
static void put_number_of_python(struct json_writer *writer, const struct json *value)
{
    char text[JSON_FLOAT_TEXT];
    double number;
    const char *spelled = json_number_text(value);
    if (!json_is_integer(value) && json_double(value, &number))
        spelled = json_f64_text(number, text);
    json_put_raw(writer, NULL, strcmp(spelled, "-0") == 0 ? "0" : spelled);
}

/* Recurses as deep as the document, at most JSON_MAX_DEPTH. */
void json_put_sorted(struct json_writer *writer, const struct json *value, const struct json *more)
{
    bool is_object = json_is(value, JSON_OBJECT);
    size_t n = 0;
    if (!is_object && !json_is(value, JSON_ARRAY)) {
        if (json_is(value, JSON_NUMBER))
            put_number_of_python(writer, value);
        else
            put_scalar(writer, value);
        return;
    }
    open_bracket(writer, NULL, is_object);
    for (const struct json *element = json_first(value); element != NULL; element = json_next(element))
        json_put_sorted(writer, element, NULL);
    struct json_member *members = is_object ? sorted_members(value, more, &n) : NULL;
    for (size_t i = 0; i < n; i++) {
        json_put_key(writer, members[i].key, members[i].key_length);
        json_put_sorted(writer, members[i].value, NULL);
    }
    free(members);
    json_end(writer);
}

/* Recurses as deep as the document, at most JSON_MAX_DEPTH. */
static void put_tagged(struct json_writer *writer, const struct json *value)
{
    bool is_object = json_is(value, JSON_OBJECT);
    double number;
    if (json_double(value, &number) && !isfinite(number))
        json_put_template(writer, "{'__float__': %s}", number < 0 ? "-Infinity" : "Infinity");
    else if (json_is(value, JSON_NUMBER))
        put_number_of_python(writer, value);
    else if (!is_object && !json_is(value, JSON_ARRAY))
        put_scalar(writer, value);
    if (!is_object && !json_is(value, JSON_ARRAY))
        return;
    open_bracket(writer, NULL, is_object);
    for (const struct json *element = json_first(value); element != NULL; element = json_next(element))
        put_tagged(writer, element);
    for (struct json_member member = {0}; json_next_member(value, &member);) {
        json_put_key(writer, member.key, member.key_length);
        put_tagged(writer, member.value);
    }
    json_end(writer);
}

void json_put_by_key(struct json_writer *writer, const struct json *value, const struct json *more,
                     const char *const *removed)
{
    size_t n;
    struct json_member *members = sorted_members(value, more, &n);
    json_begin_object(writer, NULL);
    for (size_t i = 0; i < n; i++) {
        bool is_removed = false;
        for (const char *const *name = removed; *name != NULL; name++)
            is_removed |= strcmp(*name, members[i].key) == 0;
        if (is_removed)
            continue;
        json_put_key(writer, members[i].key, members[i].key_length);
        put_tagged(writer, members[i].value);
    }
    json_end(writer);
    free(members);
}

void json_put_f64(struct json_writer *writer, const char *key, double value, int digits)
{
    begin(writer, key);
    buffer_printf(writer->out, isfinite(value) ? "%.*g" : "null", digits, value);
}

void json_put_f32(struct json_writer *writer, const char *key, float value)
{
    char text[JSON_FLOAT_TEXT];
    json_put_raw(writer, key, json_f32_text(value, text));
}

enum { DIGITS = 17 }; /* enough to identify any F64 */

/* Finds the fewest digits that identify a finite number: D.DDD times ten to the exponent. */
static void shortest_digits(double value, bool is_single, char digits[DIGITS + 1], int *ret_exponent)
{
    char text[32];
    int precision = 0;
    do
        snprintf(text, sizeof text, "%.*e", precision, fabs(value));
    while ((is_single ? (double)strtof(text, NULL) : strtod(text, NULL)) != fabs(value) && ++precision < DIGITS);
    *ret_exponent = atoi(strchr(text, 'e') + 1);
    digits[0] = text[0];
    memcpy(digits + 1, text + 2, (size_t)precision);
    digits[precision + 1] = '\0';
}

static const char *float_text(double value, bool is_single, char out[JSON_FLOAT_TEXT])
{
    enum { SMALLEST = -4, LARGEST = 16 }; /* exponents that are written out */
    char digits[DIGITS + 1];
    int exponent;
    if (!isfinite(value)) {
        const char *infinity = value < 0 ? "-Infinity" : "Infinity";
        strcpy(out, isnan(value) ? "NaN" : infinity);
        return out;
    }
    shortest_digits(value, is_single, digits, &exponent);
    const char *sign = signbit(value) ? "-" : "";
    int n_digits = (int)strlen(digits);
    if (exponent < SMALLEST || exponent >= LARGEST)
        snprintf(out, JSON_FLOAT_TEXT, "%s%c%s%s%s%02d", sign, digits[0], n_digits > 1 ? "." : "", digits + 1,
                 exponent < 0 ? "e-" : "e+", abs(exponent));
    else if (exponent < 0)
        snprintf(out, JSON_FLOAT_TEXT, "%s0.%.*s%s", sign, -exponent - 1, "000", digits);
    else if (exponent + 1 >= n_digits)
        snprintf(out, JSON_FLOAT_TEXT, "%s%s%.*s.0", sign, digits, exponent + 1 - n_digits, "000000000000000");
    else
        snprintf(out, JSON_FLOAT_TEXT, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
    return out;
}

const char *json_f32_text(float value, char out[JSON_FLOAT_TEXT])
{
    return float_text((double)value, true, out);
}

const char *json_f64_text(double value, char out[JSON_FLOAT_TEXT])
{
    return float_text(value, false, out);
}
