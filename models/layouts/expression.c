#include "models/layouts/expression.h"

#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { MAX_DEPTH = 32, MAX_ARGUMENTS = 4, MAX_NAME = 128 };

struct evaluation {
    const char *text, *at;
    const struct names *names;
    struct arena *arena;
    struct error *error;
    unsigned depth;
    bool skips; /* only parse: the value has no influence */
};

struct value value_of_number(int64_t number)
{
    return (struct value){.kind = VALUE_NUMBER, .number = number};
}

struct value value_of_boolean(bool boolean)
{
    return (struct value){.kind = VALUE_BOOLEAN, .number = boolean};
}

struct value value_of_text(const char *text)
{
    return (struct value){.kind = VALUE_TEXT, .text = text};
}

struct value value_of_json(const struct json *json)
{
    int64_t number;
    if (json == NULL || json_type(json) == JSON_NULL)
        return (struct value){.kind = VALUE_NULL};
    if (json_is(json, JSON_TRUE) || json_is(json, JSON_FALSE))
        return value_of_boolean(json_is(json, JSON_TRUE));
    if (json_is_integer(json) && json_i64(json, &number))
        return value_of_number(number);
    if (json_string(json, NULL) != NULL)
        return value_of_text(json_string(json, NULL));
    return (struct value){.kind = VALUE_JSON, .json = json};
}

bool value_is_true(const struct value *value)
{
    if (value->kind == VALUE_TEXT)
        return *value->text != '\0';
    return value->kind == VALUE_JSON || value->number != 0;
}

static bool fail(const struct evaluation *evaluation, const char *at, const char *reason)
{
    return error_set(evaluation->error, "'%.200s': column %zu: %s", evaluation->text,
                     (size_t)(at - evaluation->text) + 1, reason);
}

/* Skips white space, and then `token` if it follows; reports whether it did. */
static bool take(struct evaluation *evaluation, const char *token)
{
    while (isspace((unsigned char)*evaluation->at))
        evaluation->at++;
    if (!text_starts_with(evaluation->at, token))
        return false;
    evaluation->at += strlen(token);
    return true;
}

static bool choice(struct evaluation *evaluation, struct value *ret_value);

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static bool number(struct evaluation *evaluation, struct value *ret_value)
{
    const char *start = evaluation->at;
    int64_t result = 0;
    for (; isdigit((unsigned char)*evaluation->at); evaluation->at++)
        if (__builtin_mul_overflow(result, 10, &result) ||
            __builtin_add_overflow(result, *evaluation->at - '0', &result))
            return fail(evaluation, start, "the number is too large");
    *ret_value = value_of_number(result);
    return true;
}

static bool quoted(struct evaluation *evaluation, struct value *ret_value)
{
    const char *start = ++evaluation->at, *end = strchr(start, '\'');
    if (end == NULL)
        return fail(evaluation, start - 1, "a closing ' is missing");
    evaluation->at = end + 1;
    *ret_value = evaluation->skips ? value_of_number(0)
                                   : value_of_text(arena_strndup(evaluation->arena, start, (size_t)(end - start)));
    return true;
}

static bool call_known(struct evaluation *evaluation, const char *start, const char *name,
                       const struct value *arguments, unsigned n_arguments, struct value *ret_value)
{
    bool is_ceil = strcmp(name, "ceil") == 0, is_max = strcmp(name, "max") == 0;
    int64_t a = arguments[0].number, b = arguments[1].number;
    if (n_arguments != 2 || arguments[0].kind != VALUE_NUMBER || arguments[1].kind != VALUE_NUMBER)
        return fail(evaluation, start, "takes two numbers");
    if (is_ceil && (a < 0 || b <= 0))
        return fail(evaluation, start, "takes a number and a number above 0");
    if (is_ceil)
        *ret_value = value_of_number(a / b + (a % b != 0));
    else
        *ret_value = value_of_number((a > b) == is_max ? a : b);
    return true;
}

static bool call(struct evaluation *evaluation, const char *start, const char *name, struct value *ret_value)
{
    struct value arguments[MAX_ARGUMENTS] = {{0}};
    unsigned n_arguments = 0;
    while (!take(evaluation, ")")) {
        if (n_arguments == MAX_ARGUMENTS || (n_arguments > 0 && !take(evaluation, ",")))
            return fail(evaluation, evaluation->at, "expected , or )");
        if (!choice(evaluation, &arguments[n_arguments++]))
            return false;
    }
    *ret_value = value_of_number(0);
    if (evaluation->skips)
        return true;
    if (strcmp(name, "min") == 0 || strcmp(name, "max") == 0 || strcmp(name, "ceil") == 0)
        return call_known(evaluation, start, name, arguments, n_arguments, ret_value);
    struct error reason;
    const struct names *names = evaluation->names;
    return names->call(names->context, name, arguments, n_arguments, ret_value, &reason) ||
           fail(evaluation, start, reason.message);
}

static bool name(struct evaluation *evaluation, struct value *ret_value)
{
    char text[MAX_NAME];
    const char *start = evaluation->at;
    size_t length = 0;
    while (is_name_byte(start[length]))
        length++;
    if (length >= sizeof text)
        return fail(evaluation, start, "the name is too long");
    memcpy(text, start, length);
    text[length] = '\0';
    evaluation->at += length;
    if (*evaluation->at == '(') {
        evaluation->at++;
        return call(evaluation, start, text, ret_value);
    }
    *ret_value = (struct value){.kind = VALUE_NULL};
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        *ret_value = value_of_boolean(*text == 't');
    if (evaluation->skips || ret_value->kind == VALUE_BOOLEAN || strcmp(text, "null") == 0)
        return true;
    struct error reason;
    return evaluation->names->look_up(evaluation->names->context, text, ret_value, &reason) ||
           fail(evaluation, start, reason.message);
}

static bool primary(struct evaluation *evaluation, struct value *ret_value)
{
    if (take(evaluation, "("))
        return choice(evaluation, ret_value) &&
               (take(evaluation, ")") || fail(evaluation, evaluation->at, "expected an operator or )"));
    if (*evaluation->at == '\'')
        return quoted(evaluation, ret_value);
    if (isdigit((unsigned char)*evaluation->at))
        return number(evaluation, ret_value);
    if (isalpha((unsigned char)*evaluation->at) || *evaluation->at == '_')
        return name(evaluation, ret_value);
    return fail(evaluation, evaluation->at, "expected a number, a name, a string or (");
}

static bool unary(struct evaluation *evaluation, struct value *ret_value)
{
    unsigned n_nots = 0;
    while (take(evaluation, "!"))
        n_nots++;
    const char *start = evaluation->at;
    bool is_minus = take(evaluation, "-");
    if (!primary(evaluation, ret_value))
        return false;
    bool is_number = ret_value->kind == VALUE_NUMBER || evaluation->skips;
    if (is_minus && (!is_number || __builtin_sub_overflow(0, ret_value->number, &ret_value->number)))
        return fail(evaluation, start, "- takes a number");
    if (n_nots > 0)
        *ret_value = value_of_boolean(value_is_true(ret_value) == (n_nots % 2 == 0));
    return true;
}

/* Computes an operation on numbers; false if it has no result. */
static bool calculate(char operator, int64_t a, int64_t b, int64_t *ret_result)
{
    if ((operator== '/' || operator== '%') && (b == 0 || (a == INT64_MIN && b == -1)))
        return false;
    switch (operator) {
    case '+':
        return !__builtin_add_overflow(a, b, ret_result);
    case '-':
        return !__builtin_sub_overflow(a, b, ret_result);
    case '*':
        return !__builtin_mul_overflow(a, b, ret_result);
    case '/':
        *ret_result = a / b;
        return true;
    default:
        *ret_result = a % b;
        return true;
    }
}

static bool arithmetic(struct evaluation *evaluation, const char *operators,
                       bool (*operand)(struct evaluation *evaluation, struct value *ret_value), struct value *ret_value)
{
    if (!operand(evaluation, ret_value))
        return false;
    for (;;) {
        struct value other;
        while (isspace((unsigned char)*evaluation->at))
            evaluation->at++;
        const char *at = evaluation->at;
        if (*at == '\0' || strchr(operators, *at) == NULL)
            return true;
        evaluation->at++;
        if (!operand(evaluation, &other))
            return false;
        if (evaluation->skips)
            continue;
        if (ret_value->kind != VALUE_NUMBER || other.kind != VALUE_NUMBER)
            return fail(evaluation, at, "both sides must be whole numbers");
        if (!calculate(*at, ret_value->number, other.number, &ret_value->number))
            return fail(evaluation, at, "the operation has no result");
    }
}

static bool product(struct evaluation *evaluation, struct value *ret_value)
{
    return arithmetic(evaluation, "*/%", unary, ret_value);
}

static bool sum(struct evaluation *evaluation, struct value *ret_value)
{
    return arithmetic(evaluation, "+-", product, ret_value);
}

static bool are_equal(const struct value *a, const struct value *b)
{
    if (a->kind == VALUE_TEXT || b->kind == VALUE_TEXT)
        return a->kind == b->kind && strcmp(a->text, b->text) == 0;
    if (a->kind == VALUE_JSON || b->kind == VALUE_JSON)
        return false;
    return (a->kind == VALUE_NULL) == (b->kind == VALUE_NULL) && a->number == b->number;
}

static bool relation(struct evaluation *evaluation, struct value *ret_value)
{
    static const char *const operators[] = {"==", "!=", "<=", ">=", "<", ">"};
    struct value other;
    unsigned i = 0;
    if (!sum(evaluation, ret_value))
        return false;
    const char *at = evaluation->at;
    while (i < 6 && !text_starts_with(at, operators[i])) /* sum() skipped the white space */
        i++;
    if (i == 6)
        return true;
    evaluation->at += strlen(operators[i]);
    if (!sum(evaluation, &other))
        return false;
    if (i >= 2 && !evaluation->skips && (ret_value->kind != VALUE_NUMBER || other.kind != VALUE_NUMBER))
        return fail(evaluation, at, "both sides must be whole numbers");
    int64_t a = ret_value->number, b = other.number;
    const bool results[] = {are_equal(ret_value, &other), !are_equal(ret_value, &other), a <= b, a >= b, a<b, a> b};
    *ret_value = value_of_boolean(!evaluation->skips && results[i]);
    return true;
}

/* Evaluates operands up to the first that decides: one that is true if `decides`, else one that is not. */
static bool logic(struct evaluation *evaluation, const char *operator, bool decides,
                  bool (*operand)(struct evaluation *evaluation, struct value *ret_value), struct value *ret_value)
{
    bool skipped = evaluation->skips;
    bool is_good = operand(evaluation, ret_value);
    while (is_good && take(evaluation, operator)) {
        struct value other;
        evaluation->skips = skipped || value_is_true(ret_value) == decides;
        is_good = operand(evaluation, &other);
        if (!evaluation->skips)
            *ret_value = other;
        evaluation->skips = skipped;
    }
    return is_good;
}

static bool both(struct evaluation *evaluation, struct value *ret_value)
{
    return logic(evaluation, "&&", false, relation, ret_value);
}

static bool either(struct evaluation *evaluation, struct value *ret_value)
{
    return logic(evaluation, "||", true, both, ret_value);
}

static bool choice(struct evaluation *evaluation, struct value *ret_value)
{
    struct value yes, no;
    bool skipped = evaluation->skips;
    if (++evaluation->depth > MAX_DEPTH)
        return fail(evaluation, evaluation->at, "nested too deeply");
    if (!either(evaluation, ret_value))
        return false;
    if (take(evaluation, "?")) {
        bool is_true = value_is_true(ret_value);
        evaluation->skips = skipped || !is_true;
        if (!choice(evaluation, &yes) || (!take(evaluation, ":") && !fail(evaluation, evaluation->at, "expected :")))
            return false;
        evaluation->skips = skipped || is_true;
        if (!choice(evaluation, &no))
            return false;
        evaluation->skips = skipped;
        *ret_value = is_true ? yes : no;
    }
    evaluation->depth--;
    return true;
}

static bool whole(struct evaluation *evaluation, struct value *ret_value)
{
    if (!choice(evaluation, ret_value))
        return false;
    return take(evaluation, "") &&
           (*evaluation->at == '\0' || fail(evaluation, evaluation->at, "expected an operator"));
}

bool expression_evaluate(const char *text, const struct names *names, struct arena *arena, struct value *ret_value,
                         struct error *error)
{
    struct evaluation evaluation = {.text = text, .at = text, .names = names, .arena = arena, .error = error};
    return whole(&evaluation, ret_value);
}

bool expression_check(const char *text, struct error *error)
{
    struct evaluation evaluation = {.text = text, .at = text, .error = error, .skips = true};
    struct value value;
    return whole(&evaluation, &value);
}
