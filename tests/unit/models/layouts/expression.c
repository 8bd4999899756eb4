/* Expressions of layout files. */
#include "models/layouts/expression.h"
#include "tests/unit/check.h"

static bool look_up(void *context, const char *name, struct value *ret_value, struct error *error)
{
    (void)context;
    if (strcmp(name, "tp") == 0)
        *ret_value = value_of_number(4);
    else if (strcmp(name, "config.kind") == 0)
        *ret_value = value_of_text("llama");
    else if (strcmp(name, "config.none") == 0)
        *ret_value = (struct value){.kind = VALUE_NULL};
    else
        return error_set(error, "unknown name '%s'", name);
    return true;
}

static bool call(void *context, const char *name, const struct value *arguments, unsigned n_arguments,
                 struct value *ret_value, struct error *error)
{
    (void)context;
    if (strcmp(name, "length") != 0 || n_arguments != 1 || arguments[0].kind != VALUE_TEXT)
        return error_set(error, "unknown function '%s'", name);
    *ret_value = value_of_number((int64_t)strlen(arguments[0].text));
    return true;
}

static const struct {
    const char *text;
    int64_t number;
} rows[] = {
    {"1 + 2 * 3", 7},
    {"(1 + 2) * 3", 9},
    {"10 - 3 - 2", 5},
    {"-7 / 2", -3},
    {"7 % 4", 3},
    {"ceil(9, 4) * tp", 12},
    {"max(tp, 9) - min(tp, 9)", 5},
    {"tp == 4 && config.kind == 'llama'", 1},
    {"!(tp < 4) && tp != 5", 1},
    {"!!tp", 1},
    {"config.none || tp", 4},
    {"config.none && 1 / 0", 0},
    {"tp || unknown", 4},
    {"tp > 1 ? 10 : tp > 0 ? 20 : 30", 10},
    {"tp > 9 ? 10 : tp > 0 ? 20 : 30", 20},
    {"length('a b')", 3},
    {"true == 1", 1},
    {"null == config.none", 1},
    {"'x' == 'y'", 0},
};

static const struct {
    const char *text, *message;
} wrong[] = {
    {"1 +", "'1 +': column 4: expected a number, a name, a string or ("},
    {"(1", "'(1': column 3: expected an operator or )"},
    {"1 2", "'1 2': column 3: expected an operator"},
    {"'a", "'\\'a': column 1: a closing ' is missing"},
    {"1 / 0", "'1 / 0': column 3: the operation has no result"},
    {"9223372036854775807 + 1", "'9223372036854775807 + 1': column 21: the operation has no result"},
    {"9223372036854775808", "'9223372036854775808': column 1: the number is too large"},
    {"unknown", "'unknown': column 1: unknown name 'unknown'"},
    {"config.kind + 1", "'config.kind + 1': column 13: both sides must be whole numbers"},
    {"max(1)", "'max(1)': column 1: takes two numbers"},
    {"1 ? 2", "'1 ? 2': column 6: expected :"},
};

int main(void)
{
    const struct names names = {NULL, look_up, call};
    struct arena *arena = arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct value value;
        struct error error;
        bool is_right =
            expression_evaluate(rows[i].text, &names, arena, &value, &error) && value.number == rows[i].number;
        CHECK_NAMED(is_right && expression_check(rows[i].text, &error), rows[i].text);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct value value;
        struct error error = {""};
        CHECK_NAMED(!expression_evaluate(wrong[i].text, &names, arena, &value, &error), wrong[i].text);
        CHECK_NAMED(strstr(error.message, strchr(wrong[i].message, ':') + 2) != NULL, error.message);
    }
    char deep[4096];
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    struct error error;
    CHECK(!expression_check(deep, &error));
    arena_free(arena);
    return check_done();
}
