/* A recipe while it is read; for the files of the reader only. Functions that return false have set parsing->error. */
#pragma once

#include "models/recipes/recipe.h"
#include "text/yaml.h"

enum { RECIPE_MAX_VALUES = 1 << 18 }; /* values of parameters that aliases may multiply */

struct parsing {
    struct arena *arena;
    struct recipe *recipe;
    struct recipe_model *models; /* of the recipe, so far */
    size_t n_values;             /* of parameters, so far */
    struct error *error;
};

/* Sets the error, after the line of a value, and returns false. */
bool parsing_fail(const struct parsing *parsing, const struct yaml_value *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports whether a value is a mapping of these keys, up to a NULL, each at most once. `what` names it in errors. */
bool parsing_keys(const struct parsing *parsing, const struct yaml_value *value, const char *what,
                  const char *const *keys);

/* Returns the value of a key, or NULL if it is absent or null. */
const struct yaml_value *parsing_get(const struct yaml_value *mapping, const char *key);

/* Return the text of a scalar that is not null, or fail (NULL). */
const char *parsing_text(const struct parsing *parsing, const struct yaml_value *value, const char *what);

/* Gets a list; fails on another type, an empty list, and one of more than `most` elements. */
bool parsing_list(const struct parsing *parsing, const struct yaml_value *value, const char *what, size_t most);

/* Get a number, or a truth value as 0 or 1, as pydantic takes them: "0.5" and 1e-3, "yes" and 1. */
bool parsing_number(const struct parsing *parsing, const struct yaml_value *value, const char *what,
                    double *ret_number);
bool parsing_truth(const struct parsing *parsing, const struct yaml_value *value, const char *what, double *ret_truth);
bool parsing_count(const struct parsing *parsing, const struct yaml_value *value, const char *what, uint64_t most,
                   uint64_t *ret_count);

/* Reads `parameters` of the method, which must be known; NULL: none. `of_input` allows those that inputs have. */
bool parsing_parameters(struct parsing *parsing, const struct yaml_value *value, bool of_input,
                        struct settings *ret_settings);

/* Gets the place of a model among the recipe's, which it joins when it is first named. */
bool parsing_model(struct parsing *parsing, const struct yaml_value *value, int *ret_model);

/* Reads tokenizer_source, tokenizer and chat_template of a recipe. */
bool parsing_tokenizer(struct parsing *parsing, const struct yaml_value *root);
