/* Expressions of layout files: "tp_rank * layers / pp", "config.head_dim || config.hidden_size / head",
 * "!has('lm_head.weight')".
 *
 *     choice   either ? choice : choice
 *     either   both || both ...            the first that is true, else the last
 *     both     relation && relation ...    the first that is not true, else the last
 *     relation sum < <= > >= == != sum
 *     sum      product + - product ...
 *     product  unary * / % unary ...       whole numbers; / rounds towards 0
 *     unary    ! unary | - primary | primary
 *     primary  123 | 'text' | true | false | null | name | name(choice, ...) | (choice)
 *
 * A name is letters, digits, _ and dots, and begins with a letter or _. The functions min(), max() and ceil(a, b),
 * which is a / b rounded up, are built in; `struct names` gives all others, and names, their meaning. The values null,
 * false, 0 and '' are not true. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "text/json.h"

#include <stdbool.h>
#include <stdint.h>

enum value_kind { VALUE_NULL, VALUE_BOOLEAN, VALUE_NUMBER, VALUE_TEXT, VALUE_JSON };

struct value {
    enum value_kind kind;
    int64_t number;          /* a boolean's 0 or 1 */
    const char *text;        /* not owned */
    const struct json *json; /* not owned: an object, an array, or a number that is not an int64_t */
};

struct value value_of_number(int64_t number);
struct value value_of_boolean(bool boolean);
struct value value_of_text(const char *text);
struct value value_of_json(const struct json *json); /* NULL becomes null */
bool value_is_true(const struct value *value);

/* Gives names and functions their meaning. The caller adds the expression and column to their errors. */
struct names {
    void *context;
    bool (*look_up)(void *context, const char *name, struct value *ret_value, struct error *error);
    bool (*call)(void *context, const char *name, const struct value *arguments, unsigned n_arguments,
                 struct value *ret_value, struct error *error);
};

/* Computes the value of an expression; its quoted texts are made in `arena`. An error has the expression and column. */
bool expression_evaluate(const char *text, const struct names *names, struct arena *arena, struct value *ret_value,
                         struct error *error);

/* Reports whether `text` is an expression, whatever its names mean. */
bool expression_check(const char *text, struct error *error);
