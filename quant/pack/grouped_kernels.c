#include "quant/pack/grouped_kernels.h"

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

static inline struct range extremes_beside_nan(const float *values, size_t n)
{
    struct range range = {of_bits(INFINITE_BITS), -of_bits(INFINITE_BITS)};
    for (size_t i = 0; i < n; i++) {
        range.low = sortable(values[i]) < sortable(range.low) && values[i] == values[i] ? values[i] : range.low;
        range.high = sortable(values[i]) > sortable(range.high) && values[i] == values[i] ? values[i] : range.high;
    }
    return range;
}

/* As unsigned numbers, bits grow with the magnitude, and those of values below zero come last. */
static void grouped_extremes_portable(const float *values, size_t n, size_t columns, struct range *ret_ranges)
{
    const uint32_t sign = 0x80000000;
    for (size_t group = 0; group < n; group++) {
        const float *of_group = values + group * columns;
        int32_t highest = INT32_MIN;
        uint32_t least = UINT32_MAX, most = 0;
        for (size_t i = 0; i < columns; i++) {
            uint32_t bits = bits_of(of_group[i]);
            highest = (int32_t)bits > highest ? (int32_t)bits : highest;
            least = bits < least ? bits : least;
            most = bits > most ? bits : most;
        }
        bool has_nan = highest > INFINITE_BITS || most > (sign | INFINITE_BITS); /* it is beyond infinity */
        struct range range = {of_bits(most >= sign ? most : least), of_bits(highest >= 0 ? (uint32_t)highest : least)};
        range = has_nan ? extremes_beside_nan(of_group, columns) : range;
        ret_ranges[group] = (struct range){range.low + 0.0f, range.high + 0.0f};
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

/* Adding a power of two whose last place is that of the code leaves the code's mantissa, rounded, in the last bits of
 * the sum: 8 to 16 for normal numbers, to which the exponent adds, and 0 to 8 for subnormal ones. */
static inline uint8_t code_e4m3(float value, float low, float high)
{
    enum { EXPONENT = 0x7f800000, LEAST_EXPONENT = 0x3c800000, LARGEST = 0x43e00000, PLACES = 20 };
    uint32_t all = bits_of(value), sign = all >> 24 & 0x80;
    int32_t bits = (int32_t)(all & 0x7fffffff), limited = bits < LARGEST ? bits : LARGEST;
    int32_t own = limited & EXPONENT, exponent = own > LEAST_EXPONENT ? own : LEAST_EXPONENT;
    int32_t rounder = exponent + (PLACES << 23);
    int32_t sum = (int32_t)bits_of(of_bits((uint32_t)limited) + of_bits((uint32_t)rounder));
    int32_t code = sum - rounder + ((exponent - LEAST_EXPONENT) >> PLACES) + (bits > INFINITE_BITS);
    return (uint8_t)(sign | (uint32_t)code);
}

/* Levels 0 .5 1 1.5 2 3 4 6. */
static inline uint8_t code_e2m1(float value, float low, float high)
{
    float magnitude = of_bits(bits_of(value) & 0x7fffffff);
    uint32_t level = (uint32_t)(magnitude > 0.25f) + (magnitude >= 0.75f) + (magnitude > 1.25f) + (magnitude >= 1.75f) +
                     (magnitude > 2.5f) + (magnitude >= 3.5f) + (magnitude > 5);
    return (uint8_t)(level | (uint32_t)(value < 0) << 3);
}

static inline uint8_t code_integer(float value, float low, float high)
{
    static const float rounder = 12582912; /* its last place is 1 */
    return (uint8_t)(bits_of(limit(value, low, high) + rounder) - bits_of(rounder));
}

/* Of magnitudes below NEAR, whose distances from the two nearest levels are numbers of every type. */
#define NEAR 11.0f

static inline uint8_t code_e2m1_near(float value, float low, float high)
{
    float magnitude = of_bits(bits_of(value) & 0x7fffffff);
    uint32_t level = (uint32_t)(magnitude > 0.25f) + (magnitude > 0.75f) + (magnitude > 1.25f) + (magnitude > 1.75f) +
                     (magnitude > 2.5f) + (magnitude > 3.5f) + (magnitude > 5);
    return (uint8_t)(level | (uint32_t)(value < 0 && level != 0) << 3);
}

/* Returns if all quotients of a group are below NEAR. */
static inline bool is_near(const float *values, size_t columns, float divisor)
{
    int32_t largest = 0;
    for (size_t i = 0; i < columns; i++) {
        int32_t magnitude = (int32_t)(bits_of(values[i]) & 0x7fffffff);
        largest = magnitude > largest ? magnitude : largest;
    }
    return of_bits((uint32_t)largest) / of_bits(bits_of(divisor) & 0x7fffffff) < NEAR;
}

#define DEFINE_E2M1_DOWN(name, round)                                                                                  \
    static inline uint8_t code_##name(float value, float low, float high)                                              \
    {                                                                                                                  \
        static const float levels[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};                                                  \
        float magnitude = of_bits(bits_of(value) & 0x7fffffff), nearest = magnitude;                                   \
        uint32_t code = 0;                                                                                             \
        for (uint32_t level = 1; level < sizeof levels / sizeof *levels; level++) {                                    \
            float distance = round(of_bits(bits_of(magnitude - levels[level]) & 0x7fffffff));                          \
            code = distance < nearest ? level : code;                                                                  \
            nearest = distance < nearest ? distance : nearest;                                                         \
        }                                                                                                              \
        return (uint8_t)(code | (uint32_t)(value < 0 && code != 0) << 3);                                              \
    }

DEFINE_E2M1_DOWN(e2m1_down_f32, round_to_f32)
DEFINE_E2M1_DOWN(e2m1_down_bf16, round_to_bf16)
DEFINE_E2M1_DOWN(e2m1_down_f16, round_to_f16)

static void grouped_steps_portable(const float *values, size_t n, size_t columns, const float *edges,
                                   const float *divisors, float high, uint8_t *codes)
{
    static const float rounder = 12582912; /* its last place is 1 */
    for (size_t group = 0; group < n; group++) {
        const float *of_group = values + group * columns, edge = edges[group], divisor = divisors[group];
        uint8_t *to = codes + group * columns;
        for (size_t i = 0; i < columns; i++)
            to[i] = (uint8_t)(bits_of(limit((of_group[i] - edge) / divisor, 0, high) + rounder) - bits_of(rounder));
    }
}

typedef float round_function(float value);
typedef uint8_t code_function(float value, float low, float high);

/* One loop, which each kernel has with its own functions inlined: what is between the division and the code stays in
 * registers. */
static inline __attribute__((always_inline)) void encode(const struct quotients *quotients, const float *values,
                                                         size_t n, size_t columns, round_function *rounded,
                                                         code_function *code, uint8_t *codes)
{
    const float *divisors = quotients->divisors, *summands = quotients->summands;
    const float low = quotients->low, high = quotients->high;
    for (size_t group = 0; group < n; group++) {
        const float *of_group = values + group * columns, divisor = divisors[group];
        uint8_t *to = codes + group * columns;
        if (summands == NULL) {
            for (size_t i = 0; i < columns; i++)
                to[i] = code(rounded(of_group[i] / divisor), low, high);
            continue;
        }
        float summand = summands[group];
        for (size_t i = 0; i < columns; i++)
            to[i] = code(rounded(rounded(of_group[i] / divisor) + summand), low, high);
    }
}

#define DEFINE_ENCODE(name, code, type, level, ...)                                                                    \
    __VA_ARGS__ static void name##_##type##_##level(const struct quotients *quotients, const float *values, size_t n,  \
                                                    size_t columns, uint8_t *codes)                                    \
    {                                                                                                                  \
        encode(quotients, values, n, columns, round_to_##type, code, codes);                                           \
    }

#define DEFINE_LOOPS(level, ...)                                                                                       \
    __VA_ARGS__ static void affine_##level(const struct range *ranges, size_t n, float n_steps, float *divisors,       \
                                           float *edges)                                                               \
    {                                                                                                                  \
        affine(ranges, n, n_steps, divisors, edges);                                                                   \
    }                                                                                                                  \
    __VA_ARGS__ static void range_##level(const float *values, size_t n, size_t columns, struct range *ret_ranges)     \
    {                                                                                                                  \
        range(values, n, columns, ret_ranges);                                                                         \
    }

/* Those that there are by hand for AVX2; those of quotients in BF16, of E2M1 and of affine groups serve AVX-512, too,
 * since the compiler makes no faster ones of these. */
#define DEFINE_QUOTIENT_LOOPS(level, ...)                                                                              \
    DEFINE_ENCODE(grouped_e4m3, code_e4m3, f32, level, __VA_ARGS__)                                                    \
    DEFINE_ENCODE(grouped_e4m3, code_e4m3, f16, level, __VA_ARGS__)                                                    \
    DEFINE_ENCODE(grouped_integer, code_integer, f32, level, __VA_ARGS__)                                              \
    DEFINE_ENCODE(grouped_integer, code_integer, f16, level, __VA_ARGS__)

DEFINE_ENCODE(grouped_e4m3, code_e4m3, bf16, portable)
DEFINE_ENCODE(grouped_integer, code_integer, bf16, portable)

/* Only quotients that are far need all distances. */
#define DEFINE_ENCODE_DOWN(name, code, type)                                                                           \
    DEFINE_ENCODE(name##_far, code, type, portable)                                                                    \
    static void grouped_##name##_##type##_portable(const struct quotients *quotients, const float *values, size_t n,   \
                                                   size_t columns, uint8_t *codes)                                     \
    {                                                                                                                  \
        struct quotients group = *quotients;                                                                           \
        for (size_t i = 0; i < n; i++, group.divisors++, values += columns, codes += columns) {                        \
            if (group.summands == NULL && is_near(values, columns, *group.divisors))                                   \
                e2m1_near_##type##_portable(&group, values, 1, columns, codes);                                        \
            else                                                                                                       \
                name##_far_##type##_portable(&group, values, 1, columns, codes);                                       \
            if (group.summands != NULL)                                                                                \
                group.summands++;                                                                                      \
        }                                                                                                              \
    }

#define DEFINE_E2M1(type)                                                                                              \
    DEFINE_ENCODE(grouped_e2m1, code_e2m1, type, portable)                                                             \
    DEFINE_ENCODE(e2m1_near, code_e2m1_near, type, portable)                                                           \
    DEFINE_ENCODE_DOWN(e2m1_down, code_e2m1_down_##type, type)                                                         \
    DEFINE_ENCODE_DOWN(e2m1_exact, code_e2m1_down_f32, type)

DEFINE_E2M1(f32)
DEFINE_E2M1(bf16)
DEFINE_E2M1(f16)

#define ALL_TYPES(name, level)                                                                                         \
    {                                                                                                                  \
        grouped_##name##_f32_##level, grouped_##name##_bf16_##level, grouped_##name##_f16_##level                      \
    }

#define KERNELS(level, usual)                                                                                          \
    {                                                                                                                  \
        .range = range_##level, .affine = affine_##level, .extremes = grouped_extremes_##usual,                        \
        .encode = {[QUOTIENT_E4M3] = {grouped_e4m3_f32_##level, grouped_e4m3_bf16_##usual, grouped_e4m3_f16_##level},  \
                   [QUOTIENT_E2M1] = ALL_TYPES(e2m1, usual),                                                           \
                   [QUOTIENT_INTEGER] = {grouped_integer_f32_##level, grouped_integer_bf16_##usual,                    \
                                         grouped_integer_f16_##level},                                                 \
                   [QUOTIENT_E2M1_DOWN] = ALL_TYPES(e2m1_down, usual),                                                 \
                   [QUOTIENT_E2M1_DOWN_EXACTLY] = ALL_TYPES(e2m1_exact, usual)},                                       \
        .steps = grouped_steps_##usual,                                                                                \
    }

DEFINE_LOOPS(portable)
DEFINE_QUOTIENT_LOOPS(portable)
const struct grouped_kernels grouped_portable = KERNELS(portable, portable);
#if defined(__x86_64__)
DEFINE_LOOPS(avx2, FOR_AVX2)
const struct grouped_kernels grouped_avx2 = KERNELS(avx2, avx2);
DEFINE_LOOPS(avx512, FOR_AVX512)
DEFINE_QUOTIENT_LOOPS(avx512, FOR_AVX512)
const struct grouped_kernels grouped_avx512 = KERNELS(avx512, avx2);
#elif defined(__aarch64__)
const struct grouped_kernels grouped_neon = {
    .range = range_portable,
    .affine = affine_portable,
    .extremes = grouped_extremes_portable,
    .encode = {[QUOTIENT_E4M3] = {grouped_e4m3_f32_portable, grouped_e4m3_bf16_neon, grouped_e4m3_f16_portable},
               [QUOTIENT_E2M1] = ALL_TYPES(e2m1, portable),
               [QUOTIENT_INTEGER] = {grouped_integer_f32_portable, grouped_integer_bf16_neon,
                                     grouped_integer_f16_portable},
               [QUOTIENT_E2M1_DOWN] = {grouped_e2m1_down_f32_portable, grouped_e2m1_down_bf16_neon,
                                       grouped_e2m1_down_f16_portable},
               [QUOTIENT_E2M1_DOWN_EXACTLY] = {grouped_e2m1_exact_f32_portable, grouped_e2m1_exact_bf16_neon,
                                               grouped_e2m1_exact_f16_portable}},
    .steps = grouped_steps_neon,
};
#endif

const struct grouped_kernels *grouped_kernels_at(enum cpu_level level)
{
#if defined(__x86_64__)
    static const struct grouped_kernels *const levels[] = {[CPU_PORTABLE] = &grouped_portable,
                                                           [CPU_NEON] = &grouped_portable,
                                                           [CPU_AVX2] = &grouped_avx2,
                                                           [CPU_AVX512] = &grouped_avx512};
    return levels[level];
#elif defined(__aarch64__)
    return level >= CPU_NEON ? &grouped_neon : &grouped_portable;
#else
    return &grouped_portable;
#endif
}

const struct grouped_kernels *grouped_kernels(void)
{
    return grouped_kernels_at(cpu_level());
}
