#include "quant/grouped_kernels.h"

#include <math.h>
#include <string.h>

enum { INFINITE_BITS = 0x7f800000 };

static inline float round_to_f32(float value)
{
    return value;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float limit(float value, float low, float high)
{
    value = value > high ? high : value;
    return value < low ? low : value;
}

/* Compares bits, which the compiler makes vectors of: as signed numbers they grow with values above zero, as unsigned
 * ones with the magnitude of values below it. */
static inline void range(const float *values, size_t n, size_t columns, struct range *ret_ranges)
{
    for (size_t group = 0; group < n; group++) {
        const float *of_group = values + group * columns;
        int32_t high = 0;
        uint32_t low = 0x80000000;
        for (size_t i = 0; i < columns; i++) {
            uint32_t bits = bits_of(of_group[i]);
            high = (int32_t)bits > high ? (int32_t)bits : high;
            low = bits > low ? bits : low;
        }
        ret_ranges[group] = (struct range){low == 0x80000000 ? 0 : of_bits(low), of_bits((uint32_t)high)};
    }
}

/* As signed numbers these grow with values of either sign. */
static inline int32_t sortable(float value)
{
    int32_t bits = (int32_t)bits_of(value);
    return bits ^ (bits >> 31 & 0x7fffffff);
}

static inline float of_sortable(int32_t number)
{
    return of_bits((uint32_t)(number ^ (number >> 31 & 0x7fffffff)));
}

static inline struct range extremes_beside_nan(const float *values, size_t n)
{
    struct range range = {of_bits(INFINITE_BITS), -of_bits(INFINITE_BITS)};
    for (size_t i = 0; i < n; i++) {
        range.low = sortable(values[i]) < sortable(range.low) && values[i] == values[i] ? values[i] : range.low;
        range.high = sortable(values[i]) > sortable(range.high) && values[i] == values[i] ? values[i] : range.high;
    }
    return range;
}

static inline void extremes(const float *values, size_t n, size_t columns, struct range *ret_ranges)
{
    for (size_t group = 0; group < n; group++) {
        const float *of_group = values + group * columns;
        int32_t low = INFINITE_BITS, high = ~INFINITE_BITS;
        for (size_t i = 0; i < columns; i++) {
            int32_t number = sortable(of_group[i]);
            low = number < low ? number : low;
            high = number > high ? number : high;
        }
        bool has_nan = low < ~INFINITE_BITS || high > INFINITE_BITS; /* it is beyond infinity */
        ret_ranges[group] =
            has_nan ? extremes_beside_nan(of_group, columns) : (struct range){of_sortable(low), of_sortable(high)};
    }
}

static inline void affine(const struct range *ranges, size_t n, float n_steps, float *divisors, float *edges)
{
    static const float least = 1e-7f;
    for (size_t i = 0; i < n; i++) {
        float low = ranges[i].low, high = ranges[i].high;
        bool low_is_farther = of_bits(bits_of(low) & 0x7fffffff) > of_bits(bits_of(high) & 0x7fffffff);
        float edge = low_is_farther ? low : high, divisor = (high - low) / n_steps;
        divisor = divisor > least ? divisor : least;
        divisor = low_is_farther ? divisor : -divisor;
        float steps = rintf(edge / divisor), moved = edge / steps;
        divisors[i] = steps != 0 ? moved : divisor;
        edges[i] = steps != 0 ? edge : 0;
    }
}

#define DEFINE_DIVIDE(type)                                                                                            \
    static inline void divide_##type(float *values, size_t n, size_t columns, const float *divisors)                   \
    {                                                                                                                  \
        for (size_t group = 0; group < n; group++) {                                                                   \
            float *of_group = values + group * columns, divisor = divisors[group];                                     \
            for (size_t i = 0; i < columns; i++)                                                                       \
                of_group[i] = round_to_##type(of_group[i] / divisor);                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static inline void add_##type(float *values, size_t n, size_t columns, const float *summands)                      \
    {                                                                                                                  \
        for (size_t group = 0; group < n; group++) {                                                                   \
            float *of_group = values + group * columns, summand = summands[group];                                     \
            for (size_t i = 0; i < columns; i++)                                                                       \
                of_group[i] = round_to_##type(of_group[i] + summand);                                                  \
        }                                                                                                              \
    }

DEFINE_DIVIDE(f32)
DEFINE_DIVIDE(bf16)
DEFINE_DIVIDE(f16)

static inline void e4m3(const float *values, size_t n, uint8_t *codes)
{
    enum { CUT = 20, BIAS_DIFFERENCE = 127 - 7, NAN_CODE = 0x7f, LARGEST = 0x43e00000, NORMAL = 0x3c800000 };
    for (size_t i = 0; i < n; i++) {
        uint32_t all = bits_of(values[i]), sign = all >> 24 & 0x80;
        int32_t bits = (int32_t)(all & 0x7fffffff), limited = bits < LARGEST ? bits : LARGEST;
        int32_t normal = ((limited + 0x7ffff + (limited >> CUT & 1)) >> CUT) - (BIAS_DIFFERENCE << 3);
        int32_t subnormal = (int32_t)(bits_of(of_bits((uint32_t)limited) + 0x1p14f) - bits_of(0x1p14f));
        int32_t is_subnormal = -(limited < NORMAL); /* in units of 2^-9 */
        int32_t code = (subnormal & is_subnormal) | (normal & ~is_subnormal);
        code = bits > INFINITE_BITS ? NAN_CODE : code;
        codes[i] = (uint8_t)(sign | (uint32_t)code);
    }
}

/* Levels 0 .5 1 1.5 2 3 4 6. */
static inline void e2m1(const float *values, size_t n, uint8_t *codes)
{
    for (size_t i = 0; i < n; i++) {
        float magnitude = of_bits(bits_of(values[i]) & 0x7fffffff);
        uint32_t level = (uint32_t)(magnitude > 0.25f) + (magnitude >= 0.75f) + (magnitude > 1.25f) +
                         (magnitude >= 1.75f) + (magnitude > 2.5f) + (magnitude >= 3.5f) + (magnitude > 5);
        codes[i] = (uint8_t)(level | (uint32_t)(values[i] < 0) << 3);
    }
}

#define DEFINE_E2M1_DOWN(type)                                                                                         \
    static inline void e2m1_down_##type(const float *values, size_t n, uint8_t *codes)                                 \
    {                                                                                                                  \
        static const float levels[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            float magnitude = of_bits(bits_of(values[i]) & 0x7fffffff), nearest = magnitude;                           \
            uint32_t code = 0;                                                                                         \
            for (uint32_t level = 1; level < sizeof levels / sizeof *levels; level++) {                                \
                float distance = round_to_##type(of_bits(bits_of(magnitude - levels[level]) & 0x7fffffff));            \
                code = distance < nearest ? level : code;                                                              \
                nearest = distance < nearest ? distance : nearest;                                                     \
            }                                                                                                          \
            codes[i] = (uint8_t)(code | (uint32_t)(values[i] < 0 && code != 0) << 3);                                  \
        }                                                                                                              \
    }

DEFINE_E2M1_DOWN(f32)
DEFINE_E2M1_DOWN(bf16)
DEFINE_E2M1_DOWN(f16)

static inline void steps(const float *values, size_t n, size_t columns, const float *edges, const float *divisors,
                         float high, uint8_t *codes)
{
    static const float rounder = 12582912; /* its last place is 1 */
    for (size_t group = 0; group < n; group++) {
        const float *of_group = values + group * columns, edge = edges[group], divisor = divisors[group];
        uint8_t *to = codes + group * columns;
        for (size_t i = 0; i < columns; i++)
            to[i] = (uint8_t)(bits_of(limit((of_group[i] - edge) / divisor, 0, high) + rounder) - bits_of(rounder));
    }
}

static inline void integer(const float *values, size_t n, float low, float high, uint8_t *codes)
{
    static const float rounder = 12582912; /* its last place is 1 */
    for (size_t i = 0; i < n; i++)
        codes[i] = (uint8_t)(bits_of(limit(values[i], low, high) + rounder) - bits_of(rounder));
}

#define DEFINE_AT(level, ...)                                                                                          \
    __VA_ARGS__ static void extremes_##level(const float *values, size_t n, size_t columns, struct range *ret_ranges)  \
    {                                                                                                                  \
        extremes(values, n, columns, ret_ranges);                                                                      \
    }                                                                                                                  \
    __VA_ARGS__ static void steps_##level(const float *values, size_t n, size_t columns, const float *edges,           \
                                          const float *divisors, float high, uint8_t *codes)                           \
    {                                                                                                                  \
        steps(values, n, columns, edges, divisors, high, codes);                                                       \
    }                                                                                                                  \
    __VA_ARGS__ static void affine_##level(const struct range *ranges, size_t n, float n_steps, float *divisors,       \
                                           float *edges)                                                               \
    {                                                                                                                  \
        affine(ranges, n, n_steps, divisors, edges);                                                                   \
    }                                                                                                                  \
    __VA_ARGS__ static void range_##level(const float *values, size_t n, size_t columns, struct range *ret_ranges)     \
    {                                                                                                                  \
        range(values, n, columns, ret_ranges);                                                                         \
    }                                                                                                                  \
    DEFINE_ARITHMETIC_AT(f32, level, __VA_ARGS__)                                                                      \
    DEFINE_ARITHMETIC_AT(bf16, level, __VA_ARGS__)                                                                     \
    DEFINE_ARITHMETIC_AT(f16, level, __VA_ARGS__)                                                                      \
    __VA_ARGS__ static void e4m3_##level(const float *values, size_t n, uint8_t *codes)                                \
    {                                                                                                                  \
        e4m3(values, n, codes);                                                                                        \
    }                                                                                                                  \
    __VA_ARGS__ static void e2m1_##level(const float *values, size_t n, uint8_t *codes)                                \
    {                                                                                                                  \
        e2m1(values, n, codes);                                                                                        \
    }                                                                                                                  \
    __VA_ARGS__ static void integer_##level(const float *values, size_t n, float low, float high, uint8_t *codes)      \
    {                                                                                                                  \
        integer(values, n, low, high, codes);                                                                          \
    }                                                                                                                  \
    const struct grouped_kernels grouped_##level = {                                                                   \
        .range = range_##level,                                                                                        \
        .affine = affine_##level,                                                                                      \
        .extremes = extremes_##level,                                                                                  \
        .e2m1_down = {e2m1_down_f32_##level, e2m1_down_bf16_##level, e2m1_down_f16_##level},                           \
        .steps = steps_##level,                                                                                        \
        .divide = {divide_f32_##level, divide_bf16_##level, divide_f16_##level},                                       \
        .add = {add_f32_##level, add_bf16_##level, add_f16_##level},                                                   \
        .e4m3 = e4m3_##level,                                                                                          \
        .e2m1 = e2m1_##level,                                                                                          \
        .integer = integer_##level,                                                                                    \
    };

#define DEFINE_ARITHMETIC_AT(type, level, ...)                                                                         \
    __VA_ARGS__ static void divide_##type##_##level(float *values, size_t n, size_t columns, const float *divisors)    \
    {                                                                                                                  \
        divide_##type(values, n, columns, divisors);                                                                   \
    }                                                                                                                  \
    __VA_ARGS__ static void add_##type##_##level(float *values, size_t n, size_t columns, const float *summands)       \
    {                                                                                                                  \
        add_##type(values, n, columns, summands);                                                                      \
    }                                                                                                                  \
    __VA_ARGS__ static void e2m1_down_##type##_##level(const float *values, size_t n, uint8_t *codes)                  \
    {                                                                                                                  \
        e2m1_down_##type(values, n, codes);                                                                            \
    }

DEFINE_AT(portable)
#if defined(__x86_64__)
DEFINE_AT(avx2, FOR_AVX2)
DEFINE_AT(avx512, FOR_AVX512)
#endif

const struct grouped_kernels *grouped_kernels_at(enum cpu_level level)
{
#if defined(__x86_64__)
    static const struct grouped_kernels *const levels[] = {[CPU_PORTABLE] = &grouped_portable,
                                                           [CPU_NEON] = &grouped_portable,
                                                           [CPU_AVX2] = &grouped_avx2,
                                                           [CPU_AVX512] = &grouped_avx512};
    return levels[level];
#else
    return &grouped_portable;
#endif
}

const struct grouped_kernels *grouped_kernels(void)
{
    return grouped_kernels_at(cpu_level());
}
