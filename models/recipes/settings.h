/* The values of parameters: one for all tensors, one for each layer (a gradient), or by the name of the tensor. */
#pragma once

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
