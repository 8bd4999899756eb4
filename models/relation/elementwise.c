#include "models/relation/elementwise.h"

#include "models/relation/facts.h"
#include "quant/arithmetic/torch_functions.h"
#include "quant/views/unpack.h"

#include <math.h>

static void add_one(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] += 1.0f;
}

static void subtract_one(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] -= 1.0f;
}

static void negated_exp(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = -exponential(values[i]);
}

static void positive_exp(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = exponential(values[i]);
}

static void logarithm(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = logf(values[i]);
}

static void log_of_negated(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = logf(-values[i]);
}

const struct elementwise plus_one = {
    .forward_text = "x + 1",
    .backward_text = "x - 1",
    .forward = add_one,
    .backward = subtract_one,
    .exactness = "BF16 comes back where it is 0 or at least 2^-16, and is off by at most 6e-8 below; of values below 1 "
                 "F32 by at most 6e-8, and F16, whose sum has 10 bits, by at most 4.9e-4",
};

const struct elementwise minus_exp = {
    .forward_text = "-exp(x)",
    .backward_text = "log(-x)",
    .forward = negated_exp,
    .backward = log_of_negated,
    .exactness =
        "BF16 comes back from 2^-14 to 80 and F16 from 1 to 11, once they are rounded to their dtype; of values "
        "below 1 F32 is off by at most 1.2e-7, and F16, whose power has 10 bits, by at most 4.9e-4",
};

const struct elementwise plus_exp = {
    .forward_text = "exp(x)",
    .backward_text = "log(x)",
    .forward = positive_exp,
    .backward = logarithm,
    .exactness = "as that of -exp(x)",
};

/* Returns the dtype in which the reference computes. */
static const struct dtype *computed_in(const struct view *view)
{
    return view->dtype == &f16_dtype ? &f16_dtype : &f32_dtype;
}

const struct view *elementwise_multiply(struct arena *arena, const struct dimensions *dimensions,
                                        enum direction direction, const struct view *view, const char *const *names,
                                        size_t n_names)
{
    const struct dtype *dtype = computed_in(view);
    for (size_t i = 0; i < n_names && dimensions != NULL; i++) {
        float factor = dimensions_factor(dimensions, names[direction == FORWARD ? i : n_names - 1 - i]);
        if (factor == 1)
            continue;
        view = view_combine_number(arena, view, direction == FORWARD ? MULTIPLY : DIVIDE, factor);
        view = view_convert(arena, view, dtype);
    }
    return view;
}

const struct view *elementwise_apply(struct arena *arena, const struct elementwise *pair,
                                     const struct dimensions *dimensions, enum direction direction,
                                     const struct view *view)
{
    if (pair->apply != NULL)
        return pair->apply(arena, dimensions, direction, view);
    return view_map(arena, view, computed_in(view), direction == FORWARD ? pair->forward : pair->backward);
}
