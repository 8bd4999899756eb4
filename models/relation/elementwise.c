#include "models/relation/elementwise.h"

#include "models/relation/dimensions.h"
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

/* log(1 + exp(x)) in F32, in the steps that torch takes.
 *
 * For 32 elements at a time torch calls SLEEF (3.6: exp and log1p of 1.0 ulp, with fused multiplications), for the rest
 * the C library; above 20 the result is x. Torch's loops do so with AVX-512, and with AVX2 for multiples of 32 or fewer
 * than 16 elements. The way back computes the inverse formula. */

enum { AT_ONCE = 32 };

static const float threshold = 20;

/* A number as the sum of two; the second is the rounding error of the first. */
struct torch_sum {
    float high, low;
};

/* Returns a + b; a is the larger one. */
static struct torch_sum add(struct torch_sum a, struct torch_sum b)
{
    float high = a.high + b.high;
    return (struct torch_sum){high, a.high - high + b.high + a.low + b.low};
}

static struct torch_sum divide(struct torch_sum a, struct torch_sum b)
{
    float inverse = 1.0f / b.high, high = a.high * inverse;
    float rest = fmaf(inverse, a.high, -high), error = fmaf(-b.low, inverse, fmaf(-b.high, inverse, 1.0f));
    return (struct torch_sum){high, fmaf(high, error, fmaf(a.low, inverse, rest))};
}

/* exp(x) = 2^q exp(r), where r is at most log(2) / 2. */
static float exp_in_steps(float x)
{
    static const float least = -104; /* below this the result is 0 */
    static const float log2_high = 0.693145751953125f, log2_low = 1.428606765330187045e-06f;
    static const float terms[] = {0.000198527617612853646278381f, 0.00139304355252534151077271f,
                                  0.00833336077630519866943359f,  0.0416664853692054748535156f,
                                  0.166666671633720397949219f,    0.5f};
    if (x < least)
        return 0;
    float q = rintf(x * (float)M_LOG2E), r = fmaf(q, -log2_low, fmaf(q, -log2_high, x)), sum = terms[0];
    for (size_t i = 1; i < sizeof terms / sizeof *terms; i++)
        sum = fmaf(sum, r, terms[i]);
    return ldexpf(1.0f + fmaf(r * r, sum, r), (int)q);
}

/* log(1 + x) = e log(2) + log(1 + m), where 1 + m is between 3/4 and 3/2, by the series of (1 + y) / (1 - y). */
static float log1p_in_steps(float x)
{
    static const struct torch_sum log2 = {0.69314718246459960938f, -1.904654323148236017e-09f};
    int exponent = ilogbf((x + 1.0f) * (1.0f / 0.75f));
    float scale = ldexpf(1.0f, -exponent), m = fmaf(x, scale, scale - 1.0f), e = (float)exponent;
    struct torch_sum y = divide((struct torch_sum){m, 0}, add((struct torch_sum){2, 0}, (struct torch_sum){m, 0}));
    float square = y.high * y.high;
    float series = fmaf(fmaf(0.3027294874e+0f, square, 0.3996108174e+0f), square, 0.6666694880e+0f);
    struct torch_sum result = {log2.high * e, fmaf(log2.high, e, -(log2.high * e))};
    result.low = fmaf(log2.low, e, result.low);
    result = add(result, (struct torch_sum){2 * y.high, 2 * y.low});
    result = add(result, (struct torch_sum){square * y.high * series, 0});
    return result.high + result.low;
}

static void forward_in_steps(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] <= threshold)
            values[i] = log1p_in_steps(exp_in_steps(values[i]));
}

static void forward(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] <= threshold)
            values[i] = log1pf(expf(values[i]));
}

static void backward(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] <= threshold)
            values[i] = (float)log(expm1((double)values[i]));
}

static const struct view *apply(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                const struct view *view)
{
    const uint64_t n = view->n_elements, n_in_steps = n / AT_ONCE * AT_ONCE;
    const struct dtype *dtype = view->dtype == &f16_dtype ? &f16_dtype : &f32_dtype;
    if (direction == BACKWARD)
        return view_map(arena, view, dtype, backward);
    const struct view *flat = view_reshape(arena, view, 1, &n);
    const struct view *parts[] = {
        view_map(arena, view_slice(arena, flat, 0, 0, n_in_steps, 1), dtype, forward_in_steps),
        view_map(arena, view_slice(arena, flat, 0, n_in_steps, n - n_in_steps, 1), dtype, forward)};
    return view_reshape(arena, view_concatenate(arena, parts, 2, 0), view->rank, view->shape);
}

const struct elementwise softplus = {
    .forward_text = "log(1 + exp(x))",
    .backward_text = "log(exp(x) - 1)",
    .apply = apply,
    .exactness =
        "BF16 comes back from 2^-14 to 80, once it is rounded; of values below 1 F32 is off by at most 1.2e-7, and "
        "F16 by at most 9.8e-4",
};
