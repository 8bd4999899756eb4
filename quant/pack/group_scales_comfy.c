#include "quant/pack/group_scales.h"

#include <math.h>

/* The tool divides by 0 where the exponent would be -127, and makes NaN; this is the least power instead. */
struct scale group_scale_at_most(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    enum { BIAS = 127, MOST = 254 };
    float largest = range_largest(range), scale = largest / group_largest_code(grouping);
    if (largest == 0)
        return (struct scale){.divisor = 1};
    int exponent = scale < 0x1p-127f ? -BIAS : isfinite(scale) ? group_exponent_above(scale) : MOST - BIAS;
    return (struct scale){.divisor = ldexpf(1, exponent), .code = (uint8_t)(exponent + BIAS)};
}

struct scale group_scale_of_127(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    static const float largest_code = 127, least = 1e-30f;
    float scale = range_largest(range) / largest_code;
    scale = scale < least ? least : scale;
    return (struct scale){.divisor = scale, .stored = scale};
}

/* A group whose scale is 0 has zeros alone: what is divided by infinity. */
void group_scales_by_any_factor(const struct grouping *grouping, const struct range *ranges, size_t n, float factor,
                                struct scale *scales)
{
    static const float least_factor = 0x1p-126f, most = 448;
    enum { AT_ONCE = 1024 };
    float ratios[AT_ONCE], decoded[AT_ONCE];
    uint8_t codes[AT_ONCE];
    factor = factor < least_factor ? least_factor : factor;
    for (size_t first = 0; first < n; first += AT_ONCE) {
        size_t count = n - first < AT_ONCE ? n - first : AT_ONCE;
        for (size_t i = 0; i < count; i++) {
            float ratio = range_largest(&ranges[first + i]) / group_largest_code(grouping) / factor;
            ratios[i] = ratio > most ? most : ratio;
        }
        group_encode_e4m3(ratios, count, codes);
        dtype_kernels(&f8_e4m3_dtype).decode(codes, decoded, count);
        for (size_t i = 0; i < count; i++) {
            float product = factor * decoded[i];
            scales[first + i] = (struct scale){.divisor = product == 0 ? INFINITY : product, .code = codes[i]};
        }
    }
}
