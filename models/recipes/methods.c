#include "models/recipes/methods.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

const struct parameter parameters[N_PARAMETERS] = {
    [PARAMETER_WEIGHT] = {PARAMETER_WEIGHT, "weight", NUMBER, true},
    [PARAMETER_DENSITY] = {PARAMETER_DENSITY, "density", NUMBER, true},
    [PARAMETER_GAMMA] = {PARAMETER_GAMMA, "gamma", NUMBER, true},
    [PARAMETER_EPSILON] = {PARAMETER_EPSILON, "epsilon", NUMBER, true},
    [PARAMETER_SCALE] = {PARAMETER_SCALE, "scale", NUMBER, true},
    [PARAMETER_T] = {PARAMETER_T, "t", NUMBER, false},
    [PARAMETER_LAMBDA] = {PARAMETER_LAMBDA, "lambda", NUMBER, false},
    [PARAMETER_NORMALIZE] = {PARAMETER_NORMALIZE, "normalize", TRUTH, false},
    [PARAMETER_RESCALE] = {PARAMETER_RESCALE, "rescale", TRUTH, false},
    [PARAMETER_INT8_MASK] = {PARAMETER_INT8_MASK, "int8_mask", TRUTH, false},
    [PARAMETER_NORMALIZE_WEIGHTS] = {PARAMETER_NORMALIZE_WEIGHTS, "normalize_weights", TRUTH, false},
    [PARAMETER_EPS] = {PARAMETER_EPS, "eps", NUMBER, false},
    [PARAMETER_SELECT_TOPK] = {PARAMETER_SELECT_TOPK, "select_topk", NUMBER, false},
    [PARAMETER_FILTER_WISE] = {PARAMETER_FILTER_WISE, "filter_wise", TRUTH, false},
    [PARAMETER_NUSLERP_FLATTEN] = {PARAMETER_NUSLERP_FLATTEN, "nuslerp_flatten", TRUTH, false},
    [PARAMETER_NUSLERP_ROW_WISE] = {PARAMETER_NUSLERP_ROW_WISE, "nuslerp_row_wise", TRUTH, false},
    [PARAMETER_MAX_ITER] = {PARAMETER_MAX_ITER, "max_iter", COUNT, false},
    [PARAMETER_TOL] = {PARAMETER_TOL, "tol", NUMBER, false},
};

#define WEIGHT                                                                                                         \
    {                                                                                                                  \
        PARAMETER_WEIGHT, true, NAN                                                                                    \
    }

static const struct method_parameter linear[] = {WEIGHT, {PARAMETER_NORMALIZE, false, 1}};
static const struct method_parameter passthrough[] = {{PARAMETER_SCALE, false, NAN}};

#define PARAMETERS(array) .parameters = array, .n_parameters = sizeof array / sizeof *array

static const struct method methods[] = {
    {"linear", merge_linear, .min_models = 1, .cost = COST_NONE, PARAMETERS(linear)},
    {"passthrough", merge_scaled, .min_models = 1, .max_models = 1, .cost = COST_NONE, PARAMETERS(passthrough)},
    {"arcee_fusion", .refusal = "its thresholds depend on the processor (softmax and log of torch)"},
    {"ram", .refusal = "it is not supported"},
    {"ramplus_tl", .refusal = "it is not supported"},
};

const struct method *method_of_name(const char *name, struct error *error)
{
    struct text_guess guess = {.typed = name};
    char question[TEXT_QUESTION];
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcmp(methods[i].name, name) != 0) {
            text_guess_try(&guess, methods[i].name);
            continue;
        }
        if (methods[i].make != NULL)
            return &methods[i];
        error_set(error, "the method %s cannot be computed: %s", name, methods[i].refusal);
        return NULL;
    }
    error_set(error, "'%.100s' is not a merge method%s", name, text_guess_question(&guess, question));
    return NULL;
}

const struct method_parameter *method_parameter(const struct method *method, enum parameter_name name)
{
    for (size_t i = 0; i < method->n_parameters; i++)
        if (method->parameters[i].name == name)
            return &method->parameters[i];
    return NULL;
}
