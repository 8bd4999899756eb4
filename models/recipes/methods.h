/* The methods of merging (methods.c), and the values of parameters: one for all tensors, one for each layer (a
 * gradient), or by the name of the tensor. */
#pragma once

#include "base/error.h"
#include "quant/merge/merge.h"

#include <stdbool.h>
#include <stddef.h>

enum parameter_name {
    PARAMETER_WEIGHT,
    PARAMETER_DENSITY,
    PARAMETER_GAMMA,
    PARAMETER_EPSILON,
    PARAMETER_SCALE,
    PARAMETER_T,
    PARAMETER_LAMBDA,
    PARAMETER_NORMALIZE,
    PARAMETER_RESCALE,
    PARAMETER_INT8_MASK,
    PARAMETER_NORMALIZE_WEIGHTS,
    PARAMETER_EPS,
    PARAMETER_SELECT_TOPK,
    PARAMETER_FILTER_WISE,
    PARAMETER_NUSLERP_FLATTEN,
    PARAMETER_NUSLERP_ROW_WISE,
    PARAMETER_MAX_ITER,
    PARAMETER_TOL,
    N_PARAMETERS,
};

/* The values for the tensors whose names contain a text. */
struct condition {
    const char *filter; /* NULL: every tensor */
    const double *values;
    size_t n_values;
    bool has_steps; /* values between two of the list are the earlier one, not interpolated */
};

/* A parameter's values in one scope. */
struct setting {
    enum parameter_name name;
    const struct condition *conditions; /* the first that fits counts */
    size_t n_conditions;
};

struct settings {
    const struct setting *items;
    size_t count;
};

/* Finds the value for a tensor at a place of a slice from 0 (first layer) to 1 (last layer); false: there is none. A
 * gradient of n values v has (1 - f) v[i] + f v[i + 1] at (i + f) / (n - 1). */
bool settings_value(const struct settings *settings, enum parameter_name name, const char *tensor, double at,
                    double *ret_value);

/* The methods of mergekit, and the parameters of each: a table. To add a method: its view in quant/merge_*.c, and a row
 * in methods.c. */

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
