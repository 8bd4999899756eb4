#include "models/recipes/parsing.h"

#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool parsing_fail(const struct parsing *parsing, const struct yaml_value *at, const char *format, ...)
{
    char reason[sizeof parsing->error->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return error_set(parsing->error, "line %u: %s", (unsigned)at->line, reason);
}

static bool unknown_key(const struct parsing *parsing, const struct yaml_value *key, const char *what,
                        const char *const *keys)
{
    char question[TEXT_QUESTION];
    const char *name = key->text != NULL ? key->text : "";
    struct text_guess guess = {.typed = name};
    for (const char *const *known = keys; *known != NULL; known++)
        text_guess_try(&guess, *known);
    return parsing_fail(parsing, key, "%s: unknown key '%.100s'%s", what, name, text_guess_question(&guess, question));
}

bool parsing_keys(const struct parsing *parsing, const struct yaml_value *value, const char *what,
                  const char *const *keys)
{
    uint64_t seen = 0;
    if (value->type != YAML_MAPPING)
        return parsing_fail(parsing, value, "%s: expected a mapping", what);
    for (size_t i = 0; i < value->n_pairs; i++) {
        const struct yaml_value *key = value->pairs[i].key;
        size_t place = 0;
        if (key->text != NULL && strcmp(key->text, "<<") == 0)
            continue;
        while (keys[place] != NULL && (key->text == NULL || strcmp(keys[place], key->text) != 0))
            place++;
        if (keys[place] == NULL)
            return unknown_key(parsing, key, what, keys);
        if (seen >> place & 1)
            return parsing_fail(parsing, key, "%s: '%s' is there twice", what, key->text);
        seen |= (uint64_t)1 << place;
    }
    return true;
}

const struct yaml_value *parsing_get(const struct yaml_value *mapping, const char *key)
{
    const struct yaml_value *value = yaml_get(mapping, key);
    return value != NULL && value->type == YAML_NULL ? NULL : value;
}

static bool is_scalar(const struct yaml_value *value)
{
    return value->type != YAML_LIST && value->type != YAML_MAPPING && value->type != YAML_NULL;
}

const char *parsing_text(const struct parsing *parsing, const struct yaml_value *value, const char *what)
{
    if (is_scalar(value) && *value->text != '\0')
        return value->text;
    parsing_fail(parsing, value, "%s: expected a text", what);
    return NULL;
}

bool parsing_list(const struct parsing *parsing, const struct yaml_value *value, const char *what, size_t most)
{
    if (value->type != YAML_LIST || value->n_pairs == 0)
        return parsing_fail(parsing, value, "%s: expected a list with elements", what);
    return value->n_pairs <= most ||
           parsing_fail(parsing, value, "%s: %zu elements, the limit is %zu", what, value->n_pairs, most);
}

bool parsing_number(const struct parsing *parsing, const struct yaml_value *value, const char *what, double *ret_number)
{
    char *end = NULL;
    if (value->type == YAML_INTEGER)
        *ret_number = (double)value->integer;
    else if (value->type == YAML_FLOAT)
        *ret_number = value->real;
    else if (value->type == YAML_STRING && strspn(value->text, "+-.0123456789eE") == strlen(value->text))
        *ret_number = strtod(value->text, &end);
    else
        return parsing_fail(parsing, value, "%s: expected a number", what);
    if (end != NULL && (end == value->text || *end != '\0'))
        return parsing_fail(parsing, value, "%s: '%.40s' is not a number", what, value->text);
    return isfinite(*ret_number) || parsing_fail(parsing, value, "%s: the number is not finite", what);
}

bool parsing_truth(const struct parsing *parsing, const struct yaml_value *value, const char *what, double *ret_truth)
{
    static const char *const words[][2] = {{"false", "true"}, {"f", "t"}, {"no", "yes"}, {"n", "y"},
                                           {"off", "on"},     {"0", "1"}, {"0.0", "1.0"}};
    for (size_t i = 0; is_scalar(value) && i < sizeof words / sizeof *words; i++)
        for (int truth = 0; truth < 2; truth++)
            if (strcasecmp(value->text, words[i][truth]) == 0) {
                *ret_truth = truth;
                return true;
            }
    return parsing_fail(parsing, value, "%s: expected true or false", what);
}

bool parsing_count(const struct parsing *parsing, const struct yaml_value *value, const char *what, uint64_t most,
                   uint64_t *ret_count)
{
    if (value->type != YAML_INTEGER || value->integer < 0 || (uint64_t)value->integer > most)
        return parsing_fail(parsing, value, "%s: expected a number from 0 to %llu", what, (unsigned long long)most);
    *ret_count = (uint64_t)value->integer;
    return true;
}
