/* The inner loops of grouped.h for each processor level, on groups of F32 values in order. All levels give the same
 * results. */
#pragma once

#include "quant/blocks/dtype.h"

/* The element types whose arithmetic is imitated: each operation is rounded to one of them. */
enum rounding { ROUND_F32, ROUND_BF16, ROUND_F16, ROUNDINGS };

/* The lowest value of a group or 0, and the highest or 0. */
struct range {
    float low, high;
};

/* How quotients become codes, limited to those of the type. */
enum quotient_code {
    QUOTIENT_E4M3,    /* half to even; NaN and the sign of zero stay */
    QUOTIENT_E2M1,    /* half to even; what is below zero keeps its sign even if it rounds to zero, -0 does not */
    QUOTIENT_INTEGER, /* half to even; two's complement */

    /* The first of the nearest levels, the least first; and that by distances which are not rounded. */
    QUOTIENT_E2M1_DOWN,
    QUOTIENT_E2M1_DOWN_EXACTLY,
    QUOTIENT_CODES
};

/* Each group's divisor, and what is added to its quotients, NULL: nothing. Both results are rounded. Values and
 * divisors are numbers of the type that is rounded to. */
struct quotients {
    const float *divisors, *summands;
    float low, high; /* limits of integers */
};

typedef void quotients_function(const struct quotients *quotients, const float *values, size_t n, size_t columns,
                                uint8_t *codes);
typedef void steps_function(const float *values, size_t n, size_t columns, const float *edges, const float *divisors,
                            float high, uint8_t *codes);
typedef void extremes_function(const float *values, size_t n, size_t columns, struct range *ret_ranges);

struct grouped_kernels {
    /* Get the range of each of `n` groups of `columns` values; zeros count as positive. */
    void (*range)(const float *values, size_t n, size_t columns, struct range *ret_ranges);

    /* Get the lowest and the highest value of each of `n` groups, which differ from range() in that 0 does not count:
     * -0 becomes 0. NaN is passed over. */
    extremes_function *extremes;

    /* Gets what mlx encodes each group with: steps of `divisors` from `edges`, `n_steps` of which make up its range.
     * The divisor has the sign that makes codes count from the end of the range that is farther from 0. If that end is
     * not closest to code 0, it is moved to a whole number of steps from 0. */
    void (*affine)(const struct range *ranges, size_t n, float n_steps, float *divisors, float *edges);

    /* Encode each group's quotients: see struct quotients. A code in each byte. */
    quotients_function *encode[QUOTIENT_CODES][ROUNDINGS];

    /* Encodes each group as steps of its divisor from its edge, rounded half to even, within [0, high]. */
    steps_function *steps;
};

/* The kernels by hand, which grouped_avx2 has instead of what compilers make of the portable loops. */
quotients_function grouped_e4m3_f32_avx2, grouped_e4m3_bf16_avx2, grouped_e4m3_f16_avx2;
quotients_function grouped_integer_f32_avx2, grouped_integer_bf16_avx2, grouped_integer_f16_avx2;
quotients_function grouped_e2m1_f32_avx2, grouped_e2m1_bf16_avx2, grouped_e2m1_f16_avx2;
quotients_function grouped_e2m1_down_f32_avx2, grouped_e2m1_down_bf16_avx2, grouped_e2m1_down_f16_avx2;
quotients_function grouped_e2m1_exact_f32_avx2, grouped_e2m1_exact_bf16_avx2, grouped_e2m1_exact_f16_avx2;
steps_function grouped_steps_avx2;
extremes_function grouped_extremes_avx2;

/* Those by hand that grouped_neon has. */
quotients_function grouped_e4m3_bf16_neon, grouped_integer_bf16_neon;
quotients_function grouped_e2m1_down_bf16_neon, grouped_e2m1_exact_bf16_neon;
steps_function grouped_steps_neon;

extern const struct grouped_kernels grouped_portable, grouped_neon, grouped_avx2, grouped_avx512;

/* Return the best kernels for this processor, and for a level. */
const struct grouped_kernels *grouped_kernels(void);
const struct grouped_kernels *grouped_kernels_at(enum cpu_level level);

/* Round to BF16 or F16 like the kernels: half to even. F16 beyond its range becomes a number of at least 65536. Without
 * branches and with comparisons of integers alone, which compilers make vectors of. */
static inline float round_to_bf16(float value)
{
    int32_t bits, rounded;
    __builtin_memcpy(&bits, &value, sizeof bits);
    rounded = (int32_t)(((uint32_t)bits + 0x7fff + ((uint32_t)bits >> 16 & 1)) & 0xffff0000);
    bits = (bits & 0x7fffffff) > 0x7f800000 ? bits : rounded;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float round_to_f16(float value)
{
    int32_t bits, magnitude_bits, rounded;
    __builtin_memcpy(&bits, &value, sizeof bits);
    magnitude_bits = bits & 0x7fffffff;
    float magnitude;
    __builtin_memcpy(&magnitude, &magnitude_bits, sizeof magnitude);
    magnitude = magnitude + 0.75f - 0.75f; /* 0.75 has a last place of 2^-24, the least F16 */
    __builtin_memcpy(&rounded, &magnitude, sizeof rounded);
    int32_t normal = (int32_t)(((uint32_t)magnitude_bits + 0xfff + ((uint32_t)magnitude_bits >> 13 & 1)) & 0xffffe000);
    int32_t is_subnormal = -(magnitude_bits < 0x38800000 /* 2^-14 */);
    rounded = (rounded & is_subnormal) | (normal & ~is_subnormal);
    rounded = magnitude_bits > 0x7f800000 ? magnitude_bits : rounded;
    rounded |= bits & (int32_t)0x80000000;
    __builtin_memcpy(&value, &rounded, sizeof value);
    return value;
}
