#include "quant/group_scales.h"

#include <math.h>

/* The scale has the sign that makes codes count from the end of the range that is farther from 0. If that end is not
 * closest to code 0, it is moved to a whole number of steps from 0. */
struct scale group_affine_scale(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    static const float least = 1e-7f;
    bool low_is_farther = fabsf(range->low) > fabsf(range->high);
    float n_steps = (float)((1 << grouping->bits) - 1), edge = low_is_farther ? range->low : range->high;
    float scale = (range->high - range->low) / n_steps;
    scale = scale > least ? scale : least;
    scale = low_is_farther ? scale : -scale;
    float steps = rintf(edge / scale);
    if (steps != 0)
        scale = edge / steps;
    return (struct scale){.divisor = scale, .stored = scale, .zero_point = steps != 0 ? edge : 0};
}

struct scale group_ceiled_scale(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    enum { BIAS = 127 };
    float scale = group_numbers[rounding].round(range_largest(range) / group_largest_code(grouping));
    bool has_exponent = scale > 0 && isfinite(scale);
    int exponent = has_exponent ? (int)ceilf((float)log2((double)scale)) : 0;
    return (struct scale){.divisor = ldexpf(1, exponent), .code = (uint8_t)(exponent + BIAS)};
}

/* A group with a scale of 0 has only zeros: what is divided by infinity. */
struct scale group_e4m3_scale(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    float scale = group_numbers[rounding].round(range_largest(range) / group_largest_code(grouping)), decoded;
    uint8_t code;
    grouped_kernels()->e4m3(&scale, 1, &code);
    dtype_kernels(&f8_e4m3_dtype).decode(&code, &decoded, 1);
    decoded = group_numbers[rounding].round(decoded);
    return (struct scale){.divisor = decoded == 0 ? INFINITY : decoded, .code = code};
}
