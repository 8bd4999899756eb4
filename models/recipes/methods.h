/* The methods of mergekit, and the parameters of each: a table. To add a method: its view in quant/merge_*.c, and a row
 * in methods.c. */
#pragma once

#include "base/error.h"
#include "models/recipes/settings.h"
#include "quant/merge/merge.h"

enum parameter_type { NUMBER, TRUTH, COUNT };

struct parameter {
    enum parameter_name name;
    const char *text; /* as recipes spell it */
    enum parameter_type type;
    bool is_of_input; /* each input has its own, and scopes of inputs may hold it */
};

extern const struct parameter parameters[N_PARAMETERS]; /* by name */

/* A parameter of a method. */
struct method_parameter {
    enum parameter_name name;
    bool is_required;
    double otherwise; /* the default; NAN: none */
};

enum base_use {
    BASE_IGNORED,  /* the base is one of the models, if it is among the inputs */
    BASE_OPTIONAL, /* the base is apart from the models, if there is one */
    BASE_REQUIRED,
};

/* What reading any part of a tensor costs first. */
enum method_cost { COST_NONE, COST_ONE_PASS, COST_SELECTION, COST_RANDOM };

struct method {
    const char *name;
    merge_function *make; /* NULL: `refusal` says why */
    const char *refusal;
    const char *f32_refusal; /* why tensors in F32 are refused; NULL: they are not */
    enum base_use base;
    enum merge_sparsifier sparsifier;
    bool uses_signs;
    size_t min_models, max_models; /* without the base, where it is apart; 0: any number */
    enum method_cost cost;
    const struct method_parameter *parameters;
    size_t n_parameters;
};

/* Returns the method of that name; else fails with an error that names the nearest one, or the reason. */
const struct method *method_of_name(const char *name, struct error *error);

/* Returns the method's parameter, or NULL. */
const struct method_parameter *method_parameter(const struct method *method, enum parameter_name name);
