#include "quant/pack/group_scales.h"

#include <math.h>
#include <string.h>

void group_affine_scales(const struct grouping *grouping, const struct range *ranges, size_t n, struct scale *scales)
{
    enum { AT_ONCE = 1024 };
    float divisors[AT_ONCE], edges[AT_ONCE], n_steps = (float)((1 << grouping->bits) - 1);
    for (size_t first = 0; first < n; first += AT_ONCE) {
        size_t count = n - first < AT_ONCE ? n - first : AT_ONCE;
        grouped_kernels()->affine(ranges + first, count, n_steps, divisors, edges);
        for (size_t i = 0; i < count; i++)
            scales[first + i] = (struct scale){.divisor = divisors[i], .stored = divisors[i], .zero_point = edges[i]};
    }
}

int group_exponent_above(float number)
{
    enum { MANTISSA = 0x7fffff, BIAS = 127, FAR = 0x1000 /* from a power below, for any exponent */ };
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    bool is_normal = bits > MANTISSA, is_power = (bits & MANTISSA) == 0;
    if (is_normal && (is_power || (bits & MANTISSA) >= FAR))
        return (int)(bits >> 23) - BIAS + !is_power;
    return (int)ceilf((float)log2((double)number));
}

/* Returns the largest magnitude over the largest code. */
static float ratio_of(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    return group_numbers[rounding].round(range_largest(range) / group_largest_code(grouping));
}

static struct scale power_of_two(int exponent)
{
    enum { BIAS = 127 };
    return (struct scale){.divisor = ldexpf(1, exponent), .code = (uint8_t)(exponent + BIAS)};
}

struct scale group_ceiled_scale(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    float ratio = ratio_of(grouping, rounding, range);
    return power_of_two(ratio > 0 && isfinite(ratio) ? group_exponent_above(ratio) : 0);
}

struct scale group_scale_above(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    int exponent = 0;
    float ratio = ratio_of(grouping, rounding, range);
    if (ratio > 0 && isfinite(ratio) && frexpf(ratio, &exponent) == 0.5f)
        exponent--;
    return power_of_two(exponent);
}

/* A group with a scale of 0 has only zeros: what is divided by infinity. */
struct scale group_e4m3_scale(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    float scale = ratio_of(grouping, rounding, range), decoded;
    uint8_t code;
    group_encode_e4m3(&scale, 1, &code);
    dtype_kernels(&f8_e4m3_dtype).decode(&code, &decoded, 1);
    decoded = group_numbers[rounding].round(decoded);
    return (struct scale){.divisor = decoded == 0 ? INFINITY : decoded, .code = code};
}
