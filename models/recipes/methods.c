#include "models/recipes/methods.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

static double value_at(const struct condition *condition, double at)
{
    double place = at * (double)(condition->n_values - 1);
    size_t first = (size_t)place, next = first + 1 < condition->n_values ? first + 1 : first;
    double part = place - (double)first;
    if (condition->has_steps)
        return condition->values[first];
    return (1 - part) * condition->values[first] + part * condition->values[next];
}

static bool fits(const struct condition *condition, const char *tensor)
{
    return condition->filter == NULL || strstr(tensor, condition->filter) != NULL;
}

bool settings_value(const struct settings *settings, enum parameter_name name, const char *tensor, double at,
                    double *ret_value)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct setting *setting = &settings->items[i];
        for (size_t j = 0; setting->name == name && j < setting->n_conditions; j++) {
            if (!fits(&setting->conditions[j], tensor))
                continue;
            *ret_value = value_at(&setting->conditions[j], at);
            return true;
        }
    }
    return false;
}

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

/* clang-format off */
#define WEIGHT   {PARAMETER_WEIGHT, true, NAN}
#define SHARED_T {PARAMETER_T, true, NAN}

/* The parameters of task arithmetic and its descendants, with the defaults that differ. */
#define ARITHMETIC(normalizes, rescales)                                                                               \
    WEIGHT, {PARAMETER_DENSITY, false, 1}, {PARAMETER_LAMBDA, false, 1}, {PARAMETER_INT8_MASK, false, 0},              \
    {PARAMETER_NORMALIZE, false, normalizes}, {PARAMETER_RESCALE, false, rescales}
/* clang-format on */

static const struct method_parameter linear[] = {WEIGHT, {PARAMETER_NORMALIZE, false, 1}};
static const struct method_parameter passthrough[] = {{PARAMETER_SCALE, false, NAN}};
static const struct method_parameter slerp[] = {SHARED_T};
static const struct method_parameter nuslerp[] = {
    WEIGHT, {PARAMETER_NUSLERP_FLATTEN, false, 1}, {PARAMETER_NUSLERP_ROW_WISE, false, 0}};
static const struct method_parameter multislerp[] = {
    WEIGHT, {PARAMETER_NORMALIZE_WEIGHTS, false, 1}, {PARAMETER_EPS, false, 1e-8}};
static const struct method_parameter nearswap[] = {SHARED_T};
static const struct method_parameter model_stock[] = {{PARAMETER_FILTER_WISE, false, 0}};
static const struct method_parameter sce[] = {{PARAMETER_SELECT_TOPK, false, 1}, {PARAMETER_INT8_MASK, false, 0}};
static const struct method_parameter karcher[] = {{PARAMETER_MAX_ITER, false, 10}, {PARAMETER_TOL, false, 1e-5}};
static const struct method_parameter arithmetic[] = {ARITHMETIC(0, 0)};
static const struct method_parameter ties[] = {ARITHMETIC(1, 0)};
static const struct method_parameter dare[] = {ARITHMETIC(0, 1)};
static const struct method_parameter breadcrumbs[] = {ARITHMETIC(0, 0), {PARAMETER_GAMMA, false, 0.01}};
static const struct method_parameter della[] = {ARITHMETIC(1, 1), {PARAMETER_EPSILON, false, 0.15}};
static const struct method_parameter della_linear[] = {ARITHMETIC(0, 1), {PARAMETER_EPSILON, false, 0.15}};

#define PARAMETERS(array) .parameters = array, .n_parameters = sizeof array / sizeof *array
#define FAMILY(kind, has_signs)                                                                                        \
    .make = merge_task_arithmetic, .base = BASE_REQUIRED, .sparsifier = kind, .uses_signs = has_signs

static const struct method methods[] = {
    {"linear", merge_linear, .min_models = 1, .cost = COST_NONE, PARAMETERS(linear)},
    {"passthrough", merge_scaled, .min_models = 1, .max_models = 1, .cost = COST_NONE, PARAMETERS(passthrough)},
    {"slerp", merge_slerp, .base = BASE_REQUIRED, .min_models = 1, .max_models = 1, .cost = COST_ONE_PASS,
     PARAMETERS(slerp)},
    {"nuslerp", merge_nuslerp, .base = BASE_OPTIONAL, .min_models = 2, .max_models = 2, .cost = COST_ONE_PASS,
     PARAMETERS(nuslerp)},
    {"multislerp", merge_multislerp, .base = BASE_OPTIONAL, .min_models = 1, .cost = COST_ONE_PASS,
     PARAMETERS(multislerp)},
    {"nearswap", merge_nearswap, .base = BASE_REQUIRED, .min_models = 1, .max_models = 1, .cost = COST_NONE,
     PARAMETERS(nearswap)},
    {"model_stock", merge_model_stock, .base = BASE_REQUIRED, .min_models = 2, .cost = COST_ONE_PASS,
     PARAMETERS(model_stock)},
    {"task_arithmetic", FAMILY(MERGE_DENSE, false), .cost = COST_NONE, PARAMETERS(arithmetic)},
    {"ties", FAMILY(MERGE_MAGNITUDE, true), .cost = COST_SELECTION, PARAMETERS(ties)},
    {"dare_ties", FAMILY(MERGE_RANDOM, true), .cost = COST_RANDOM, PARAMETERS(dare)},
    {"dare_linear", FAMILY(MERGE_RANDOM, false), .cost = COST_RANDOM, PARAMETERS(dare)},
    {"della", FAMILY(MERGE_DELLA, true), .cost = COST_RANDOM, PARAMETERS(della)},
    {"della_linear", FAMILY(MERGE_DELLA, false), .cost = COST_RANDOM, PARAMETERS(della_linear)},
    {"breadcrumbs", FAMILY(MERGE_MAGNITUDE_OUTLIERS, false), .cost = COST_SELECTION, PARAMETERS(breadcrumbs)},
    {"breadcrumbs_ties", FAMILY(MERGE_MAGNITUDE_OUTLIERS, true), .cost = COST_SELECTION, PARAMETERS(breadcrumbs)},
    {"sce", merge_sce, .base = BASE_REQUIRED, .cost = COST_SELECTION, PARAMETERS(sce)},
    {"karcher", merge_karcher,
     .f32_refusal = "mergekit's dot products come from MKL, whose order of summation is unknown", .min_models = 1,
     .cost = COST_ONE_PASS, PARAMETERS(karcher)},
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
