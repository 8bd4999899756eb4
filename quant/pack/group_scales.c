#include "quant/pack/group_scales.h"

#include "quant/views/convert.h"
#include "quant/views/dependencies.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

static float round_to_f32(float value)
{
    return value;
}

static float bf16(float value)
{
    return round_to_bf16(value);
}

static float f16(float value)
{
    return round_to_f16(value);
}

const struct group_numbers group_numbers[ROUNDINGS] = {
    [ROUND_F32] = {0x1p-23f, FLT_MIN, round_to_f32},
    [ROUND_BF16] = {0x1p-7f, FLT_MIN, bf16},
    [ROUND_F16] = {0x1p-10f, 0x1p-14f, f16},
};

bool group_rounding(const struct dtype *dtype, enum rounding *ret_rounding)
{
    static const char *const names[] = {[ROUND_F32] = "F32", [ROUND_BF16] = "BF16", [ROUND_F16] = "F16"};
    for (unsigned i = 0; i < ROUNDINGS; i++)
        if (strcmp(dtype->name, names[i]) == 0) {
            *ret_rounding = (enum rounding)i;
            return true;
        }
    return false;
}

void range_extend(struct range *range, const struct range *by)
{
    range->low = by->low < range->low ? by->low : range->low;
    range->high = by->high > range->high || by->high != by->high ? by->high : range->high;
}

float range_largest(const struct range *range)
{
    return -range->low > range->high ? -range->low : range->high;
}

float group_largest_code(const struct grouping *grouping)
{
    static const float largest[] = {[CODE_E4M3] = 448, [CODE_E2M1] = 6, [CODE_E2M1_SIGNED] = 6, [CODE_E2M1_DOWN] = 6};
    return grouping->code == CODE_INTEGER ? (float)((1 << grouping->bits) - 1) / 2 : largest[grouping->code];
}

/* The scale of the whole tensor. */

struct fused {
    const struct view **matrices;
    size_t n_matrices;
    enum group_scale scale;
    _Atomic uint32_t found; /* found_bit and the bits of the scale, which is not negative; 0: not found yet */
};

static const uint32_t found_bit = (uint32_t)1 << 31;

struct fused *fused_new(struct arena *arena, enum group_scale scale, const struct view *const *matrices, size_t n)
{
    struct fused *fused = arena_alloc(arena, sizeof *fused);
    fused->scale = scale;
    fused->matrices = arena_array(arena, n, sizeof(const struct view *));
    fused->n_matrices = n;
    memcpy(fused->matrices, matrices, n * sizeof *matrices);
    return fused;
}

static bool read_largest(const struct view *matrix, float *ret_largest, struct error *error)
{
    float values[GROUPED_PIECE];
    struct range range = {0}, of_piece;
    for (uint64_t done = 0; done < matrix->n_elements;) {
        size_t count = matrix->n_elements - done < GROUPED_PIECE ? matrix->n_elements - done : GROUPED_PIECE;
        if (!convert_values(matrix, done, count, values, error))
            return false;
        grouped_kernels()->range(values, 1, count, &of_piece);
        range_extend(&range, &of_piece);
        done += count;
    }
    *ret_largest = -range.low > range.high ? -range.low : range.high;
    return true;
}

/* Returns the scale of tensors with this largest magnitude. */
static float scale_of_tensors(enum group_scale rule, enum rounding rounding, float largest)
{
    static const float largest_e2m1 = 6, largest_e4m3 = 448, least_alike = 1e-12f;
    float (*round)(float) = group_numbers[rounding].round;
    if (rule == SCALE_OF_TENSOR)
        return round(round(1 / largest) * (largest_e2m1 * largest_e4m3));
    if (rule != SCALE_ALIKE)
        return largest / (largest_e2m1 * largest_e4m3);
    float scale = largest / largest_e4m3;
    return !(largest > 0) ? 1 : scale < least_alike ? least_alike : scale;
}

static bool find_scale_of_tensors(const struct fused *fused, float *ret_scale, struct error *error)
{
    bool has_least = fused->scale == SCALE_OF_TENSOR || fused->scale == SCALE_BY_FACTOR;
    enum rounding rounding = ROUND_F32;
    float largest = 0;
    for (size_t i = 0; i < fused->n_matrices; i++) {
        float of_matrix;
        if (!read_largest(fused->matrices[i], &of_matrix, error))
            return false;
        group_rounding(fused->matrices[i]->dtype, &rounding);
        if (has_least && of_matrix < group_numbers[rounding].least)
            of_matrix = group_numbers[rounding].least;
        largest = of_matrix > largest ? of_matrix : largest;
    }
    group_rounding(fused->matrices[0]->dtype, &rounding);
    *ret_scale = scale_of_tensors(fused->scale, rounding, largest);
    return true;
}

/* Several threads may find the same number at the same time. */
bool fused_scale(struct fused *fused, float *ret_scale, struct error *error)
{
    uint32_t bits = atomic_load_explicit(&fused->found, memory_order_relaxed);
    if (bits == 0) {
        if (!find_scale_of_tensors(fused, ret_scale, error))
            return false;
        memcpy(&bits, ret_scale, sizeof bits);
        atomic_store_explicit(&fused->found, bits | found_bit, memory_order_relaxed);
    }
    bits &= ~found_bit;
    memcpy(ret_scale, &bits, sizeof bits);
    return true;
}

void fused_depend(const struct fused *fused, struct dependencies *to)
{
    for (size_t i = 0; i < fused->n_matrices; i++)
        convert_depends(fused->matrices[i], encoding_of(&f32_dtype), 0, fused->matrices[i]->n_elements, to);
}

/* Rules. */

static struct scale symmetric_scale(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    float scale = group_numbers[rounding].round(range_largest(range) / group_largest_code(grouping));
    scale = scale == 0 ? group_numbers[rounding].epsilon : scale;
    return (struct scale){.divisor = scale, .stored = scale};
}

/* The zero point is found before a scale of 0 is replaced. */
static struct scale asymmetric_scale(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    float (*round)(float) = group_numbers[rounding].round;
    float lowest = -(float)(1 << (grouping->bits - 1)), highest = -1 - lowest;
    float scale = round(round(range->high - range->low) / (highest - lowest));
    float zero = round(lowest - round(range->low / scale));
    zero = zero < lowest ? lowest : zero > highest ? highest : zero;
    zero = zero == zero ? rintf(zero) : 0;
    scale = scale == 0 ? group_numbers[rounding].epsilon : scale;
    return (struct scale){.divisor = scale, .stored = scale, .zero_point = zero};
}

/* Returns the power of 2 at or below the magnitude rounded to a place of FP4's mantissa; 0 for what is below the normal
 * numbers. */
static float power_below(float magnitude, enum rounding rounding)
{
    static const uint32_t half_place = 1 << 21, exponent_bits = 0xff800000;
    uint32_t bits;
    if (rounding == ROUND_F16 && magnitude < 0x1p-14f)
        return magnitude + 0x1p-16f >= 0x1p-14f ? 0x1p-14f : 0;
    memcpy(&bits, &magnitude, sizeof bits);
    bits = (bits + half_place) & exponent_bits;
    memcpy(&magnitude, &bits, sizeof bits);
    return magnitude;
}

static struct scale power_scale(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    enum { BIAS = 127, MOST = 255 };
    int largest_exponent = grouping->code == CODE_E4M3 ? 8 : 2;
    float power = power_below(range_largest(range), rounding);
    int exponent = power == 0 || !isfinite(power) ? 0 : BIAS + ilogbf(power) - largest_exponent;
    exponent = exponent < 0 ? 0 : exponent > MOST - 1 ? MOST - 1 : exponent;
    float scale = group_numbers[rounding].round(ldexpf(1, exponent - BIAS));
    scale = scale == 0 ? 1 : scale;
    return (struct scale){.divisor = scale, .code = (uint8_t)(BIAS + ilogbf(scale))};
}

void group_encode_e4m3(const float *numbers, size_t n, uint8_t *codes)
{
    static const float one = 1;
    grouped_kernels()->encode[QUOTIENT_E4M3][ROUND_F32](&(struct quotients){.divisors = &one}, numbers, 1, n, codes);
}

/* Sets scales of the tensor's F8_E4M3 units. */
static void find_scales_of_tensor(const struct grouping *grouping, enum rounding rounding, const struct range *ranges,
                                  size_t n, float of_tensor, struct scale *scales)
{
    enum { CODE_OF_EIGHTH = 0x20, AT_ONCE = 1024 };
    float (*round)(float) = group_numbers[rounding].round, ratios[AT_ONCE], decoded[AT_ONCE];
    uint8_t codes[AT_ONCE];
    for (size_t first = 0; first < n; first += AT_ONCE) {
        size_t count = n - first < AT_ONCE ? n - first : AT_ONCE;
        for (size_t i = 0; i < count; i++)
            ratios[i] = of_tensor * round(range_largest(&ranges[first + i]) / group_largest_code(grouping));
        group_encode_e4m3(ratios, count, codes);
        for (size_t i = 0; i < count; i++)
            codes[i] = codes[i] == 0 ? CODE_OF_EIGHTH : codes[i];
        dtype_kernels(&f8_e4m3_dtype).decode(codes, decoded, count);
        for (size_t i = 0; i < count; i++)
            scales[first + i] = (struct scale){.divisor = decoded[i] / of_tensor, .code = codes[i]};
    }
}

/* Sets scales that the tensor's factor multiplies. */
static void find_scales_by_factor(const struct grouping *grouping, const struct range *ranges, size_t n, float factor,
                                  struct scale *scales)
{
    static const float least = 0x1p-9f, most = 448;
    enum { AT_ONCE = 1024 };
    float ratios[AT_ONCE], decoded[AT_ONCE];
    uint8_t codes[AT_ONCE];
    for (size_t first = 0; first < n; first += AT_ONCE) {
        size_t count = n - first < AT_ONCE ? n - first : AT_ONCE;
        for (size_t i = 0; i < count; i++) {
            float ratio = range_largest(&ranges[first + i]) / (group_largest_code(grouping) * factor);
            ratio = ratio == 0 ? 1 : ratio;
            ratios[i] = ratio < least ? least : ratio > most ? most : ratio;
        }
        group_encode_e4m3(ratios, count, codes);
        dtype_kernels(&f8_e4m3_dtype).decode(codes, decoded, count);
        for (size_t i = 0; i < count; i++)
            scales[first + i] = (struct scale){.divisor = decoded[i] * factor, .code = codes[i]};
    }
}

static struct scale find_scale(const struct grouping *grouping, enum rounding rounding, const struct range *range)
{
    static group_rule *const rules[] = {
        [SCALE_SYMMETRIC] = symmetric_scale, [SCALE_ASYMMETRIC] = asymmetric_scale,
        [SCALE_POWER_OF_TWO] = power_scale,  [SCALE_CEILED] = group_ceiled_scale,
        [SCALE_E4M3] = group_e4m3_scale,     [SCALE_AT_MOST] = group_scale_at_most,
        [SCALE_OF_127] = group_scale_of_127, [SCALE_ABOVE] = group_scale_above,
    };
    return rules[grouping->scale](grouping, rounding, range);
}

static bool find_fused_scales(const struct grouping *grouping, enum rounding rounding, struct fused *fused,
                              const struct range *ranges, size_t n, struct scale *scales, struct error *error)
{
    float of_tensor;
    if (!fused_scale(fused, &of_tensor, error))
        return false;
    if (grouping->scale == SCALE_BY_FACTOR)
        find_scales_by_factor(grouping, ranges, n, of_tensor, scales);
    else if (grouping->scale == SCALE_BY_ANY_FACTOR)
        group_scales_by_any_factor(grouping, ranges, n, of_tensor, scales);
    else if (grouping->scale == SCALE_OF_TENSOR)
        find_scales_of_tensor(grouping, rounding, ranges, n, of_tensor, scales);
    else
        for (size_t i = 0; i < n; i++)
            scales[i] = (struct scale){.divisor = of_tensor};
    return true;
}

bool group_scales(const struct grouping *grouping, enum rounding rounding, struct fused *fused,
                  const struct range *ranges, size_t n, struct scale *scales, struct error *error)
{
    if (scale_needs_fused(grouping->scale))
        return find_fused_scales(grouping, rounding, fused, ranges, n, scales, error);
    if (grouping->scale == SCALE_AFFINE) {
        group_affine_scales(grouping, ranges, n, scales);
        return true;
    }
    for (size_t i = 0; i < n; i++)
        scales[i] = find_scale(grouping, rounding, &ranges[i]);
    return true;
}

/* ComfyUI's tools. */

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

/* mlx. */

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
