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
    static const float largest[] = {[CODE_E4M3] = 448, [CODE_E2M1] = 6, [CODE_E2M1_DOWN] = 6};
    return grouping->code == CODE_INTEGER ? (float)((1 << grouping->bits) - 1) / 2 : largest[grouping->code];
}

/* The scale of the whole tensor. */

struct fused {
    const struct view **matrices;
    size_t n_matrices;
    bool is_factor;
    _Atomic uint32_t found; /* the bits of the scale, which is not 0; 0: not found yet */
};

struct fused *fused_new(struct arena *arena, const struct view *const *matrices, size_t n)
{
    struct fused *fused = arena_alloc(arena, sizeof *fused);
    fused->matrices = arena_array(arena, n, sizeof(const struct view *));
    fused->n_matrices = n;
    memcpy(fused->matrices, matrices, n * sizeof *matrices);
    return fused;
}

struct fused *fused_factor_new(struct arena *arena, const struct view *const *matrices, size_t n)
{
    struct fused *fused = fused_new(arena, matrices, n);
    fused->is_factor = true;
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

/* Several threads may find the same number at the same time. */
bool fused_scale(struct fused *fused, float *ret_scale, struct error *error)
{
    uint32_t bits = atomic_load_explicit(&fused->found, memory_order_relaxed);
    float largest = 0;
    for (size_t i = 0; bits == 0 && i < fused->n_matrices; i++) {
        enum rounding rounding = ROUND_F32;
        float of_matrix;
        if (!read_largest(fused->matrices[i], &of_matrix, error))
            return false;
        group_rounding(fused->matrices[i]->dtype, &rounding);
        of_matrix = of_matrix < group_numbers[rounding].least ? group_numbers[rounding].least : of_matrix;
        largest = of_matrix > largest ? of_matrix : largest;
    }
    if (bits == 0) {
        static const float largest_code = 6, largest_scale = 448;
        enum rounding rounding = ROUND_F32;
        group_rounding(fused->matrices[0]->dtype, &rounding);
        float (*round)(float) = group_numbers[rounding].round;
        float reciprocal = round(1 / largest), scale = round(reciprocal * (largest_code * largest_scale));
        if (fused->is_factor)
            scale = largest / (largest_code * largest_scale);
        memcpy(&bits, &scale, sizeof bits);
        atomic_store_explicit(&fused->found, bits, memory_order_relaxed);
    }
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
        [SCALE_SYMMETRIC] = symmetric_scale, [SCALE_ASYMMETRIC] = asymmetric_scale, [SCALE_POWER_OF_TWO] = power_scale,
        [SCALE_CEILED] = group_ceiled_scale, [SCALE_E4M3] = group_e4m3_scale,
    };
    return rules[grouping->scale](grouping, rounding, range);
}

/* Gets the scales of `n` groups with these ranges. */
bool group_scales(const struct grouping *grouping, enum rounding rounding, struct fused *fused,
                  const struct range *ranges, size_t n, struct scale *scales, struct error *error)
{
    float of_tensor;
    if (scale_needs_fused(grouping->scale)) {
        if (!fused_scale(fused, &of_tensor, error))
            return false;
        if (grouping->scale == SCALE_BY_FACTOR)
            find_scales_by_factor(grouping, ranges, n, of_tensor, scales);
        else
            find_scales_of_tensor(grouping, rounding, ranges, n, of_tensor, scales);
        return true;
    }
    if (grouping->scale == SCALE_AFFINE) {
        group_affine_scales(grouping, ranges, n, scales);
        return true;
    }
    for (size_t i = 0; i < n; i++)
        scales[i] = find_scale(grouping, rounding, &ranges[i]);
    return true;
}
