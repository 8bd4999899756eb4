/* E4M3, E2M1 and integers by hand. Compilers, too, make vectors of the portable loops, 32 codes at a time, but they do
 * each operation for all 32 before the next one, which takes more registers than there are. Here eight values become
 * codes before the next eight are loaded.
 *
 * BF16 values are multiplied by the reciprocal of the divisor instead of divided by it, unless the divisor is very
 * large or very small. The product rounds to the same BF16 number as the quotient: value and divisor are 8-bit integers
 * a and b times powers of two, and a point half way between two BF16 numbers is an odd 9-bit integer m times one. The
 * quotient is never such a point, because m would have to divide a. It is more than 2^-17 of itself away from one,
 * since a 2^k and m b differ by at least 1, and the product is less than 2^-22 away from it. Subnormal quotients are
 * the exception; they are 0 as integers, and for E4M3 they are divided.
 *
 * E4M3 of quotients in BF16 is made 16 at a time, where all 32 are normal numbers of E4M3 or larger ones; codes beside
 * zeros, smaller numbers or NaN are made again, eight at a time. So are those of E2M1 by distances beside quotients
 * that are far from all levels. */
#include "quant/kernels/avx2.h"
#include "quant/pack/grouped_kernels.h"

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

enum { AT_ONCE = 32, LANES = 8, PARTS = AT_ONCE / LANES };

/* What the codes of one group are made with. */
struct group_terms {
    __m256 divisor, reciprocal, summand;
    __m256 low, high; /* limits of integers */
};

/* Returns what is rounded to codes. */
typedef __m256 quotient_function(__m256 values, const struct group_terms *terms);

/* Returns eight codes in the low bytes of the numbers, the rest of which are 0. */
typedef __m256i code_function(__m256 quotients, const struct group_terms *terms);

static inline __m256 round_f32(__m256 values)
{
    return values;
}

static inline __m256 round_bf16(__m256 values)
{
    __m256i bits = _mm256_castps_si256(values);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    rounded = _mm256_and_si256(rounded, _mm256_set1_epi32((int)0xffff0000));
    return _mm256_blendv_ps(_mm256_castsi256_ps(rounded), values, _mm256_cmp_ps(values, values, _CMP_UNORD_Q));
}

/* Like round_to_f16(), for which F16 has no largest number. */
static inline __m256 round_f16(__m256 values)
{
    const __m256 sign = _mm256_set1_ps(-0.0f), rounder = _mm256_set1_ps(0.75f);
    __m256 magnitude = _mm256_andnot_ps(sign, values);
    __m256 subnormal = _mm256_sub_ps(_mm256_add_ps(magnitude, rounder), rounder);
    __m256i bits = _mm256_castps_si256(magnitude);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 13), _mm256_set1_epi32(1));
    __m256i normal = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0xfff)));
    normal = _mm256_and_si256(normal, _mm256_set1_epi32((int)0xffffe000));
    __m256 is_subnormal = _mm256_cmp_ps(magnitude, _mm256_set1_ps(0x1p-14f), _CMP_LT_OQ);
    __m256 rounded = _mm256_blendv_ps(_mm256_castsi256_ps(normal), subnormal, is_subnormal);
    rounded = _mm256_blendv_ps(rounded, magnitude, _mm256_cmp_ps(values, values, _CMP_UNORD_Q));
    return _mm256_or_ps(rounded, _mm256_and_ps(sign, values));
}

/* See code_e4m3(). */
static inline __m256i code_e4m3(__m256 quotients, const struct group_terms *terms)
{
    const __m256i least_exponent = _mm256_set1_epi32(0x3c800000);
    __m256i all = _mm256_castps_si256(quotients),
            sign = _mm256_and_si256(_mm256_srli_epi32(all, 24), _mm256_set1_epi32(0x80));
    __m256i bits = _mm256_and_si256(all, _mm256_set1_epi32(0x7fffffff));
    __m256i limited = _mm256_min_epi32(bits, _mm256_set1_epi32(0x43e00000));
    __m256i exponent = _mm256_max_epi32(_mm256_and_si256(limited, _mm256_set1_epi32(0x7f800000)), least_exponent);
    __m256i rounder = _mm256_add_epi32(exponent, _mm256_set1_epi32(20 << 23));
    __m256 sum = _mm256_add_ps(_mm256_castsi256_ps(limited), _mm256_castsi256_ps(rounder));
    __m256i code = _mm256_sub_epi32(_mm256_castps_si256(sum), rounder);
    code = _mm256_add_epi32(code, _mm256_srli_epi32(_mm256_sub_epi32(exponent, least_exponent), 20));
    code = _mm256_sub_epi32(code, _mm256_cmpgt_epi32(bits, _mm256_set1_epi32(0x7f800000)));
    return _mm256_or_si256(sign, code);
}

/* Returns the places among 0 .5 1 1.5 2 3 4 6 of the levels nearest to magnitudes, half to even or half down. From 1
 * on, the bits of numbers grow by a 1 in the same place from each level to the next. */
static inline __m256i place_e2m1(__m256i magnitude, bool to_even)
{
    enum { QUARTER = 0x3e800000, THREE_QUARTERS = 0x3f400000, ONE = 0x3f800000, SIX = 0x40c00000, DROPPED = 22 };
    __m256i above = _mm256_max_epi32(_mm256_sub_epi32(magnitude, _mm256_set1_epi32(ONE)), _mm256_setzero_si256());
    above = _mm256_min_epi32(above, _mm256_set1_epi32(SIX - ONE));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(above, DROPPED), _mm256_set1_epi32(to_even));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(above, _mm256_set1_epi32((1 << (DROPPED - 1)) - 1)), odd);
    __m256i first = _mm256_add_epi32(_mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(QUARTER)),
                                     _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(THREE_QUARTERS - to_even)));
    return _mm256_sub_epi32(_mm256_srli_epi32(rounded, DROPPED), first);
}

static inline __m256i magnitude_bits(__m256 values)
{
    return _mm256_and_si256(_mm256_castps_si256(values), _mm256_set1_epi32(0x7fffffff));
}

/* Returns E2M1's sign bit of values where `number` is not 0. */
static inline __m256i sign_e2m1(__m256 values, __m256i number)
{
    __m256i sign = _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(values), 28), _mm256_set1_epi32(8));
    return _mm256_and_si256(sign, _mm256_cmpgt_epi32(number, _mm256_setzero_si256()));
}

/* See code_e2m1(). */
static inline __m256i code_e2m1(__m256 quotients, const struct group_terms *terms)
{
    __m256i magnitude = magnitude_bits(quotients), place = place_e2m1(magnitude, true);
    __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
    return _mm256_andnot_si256(is_nan, _mm256_or_si256(place, sign_e2m1(quotients, magnitude)));
}

typedef __m256 round_function(__m256 values);

/* See DEFINE_E2M1_DOWN. */
static inline __m256i code_e2m1_by_distance(__m256 quotients, round_function *round)
{
    static const float levels[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 magnitude = _mm256_andnot_ps(sign, quotients), nearest = magnitude, code = _mm256_setzero_ps();
    for (int i = 1; i < 8; i++) {
        __m256 distance = round(_mm256_andnot_ps(sign, _mm256_sub_ps(magnitude, _mm256_set1_ps(levels[i]))));
        __m256 is_less = _mm256_cmp_ps(distance, nearest, _CMP_LT_OQ);
        code = _mm256_blendv_ps(code, _mm256_castsi256_ps(_mm256_set1_epi32(i)), is_less);
        nearest = _mm256_blendv_ps(nearest, distance, is_less);
    }
    __m256i place = _mm256_castps_si256(code);
    return _mm256_or_si256(place, sign_e2m1(quotients, place));
}

/* See code_integer(). If one of two numbers compared is NaN, the second is returned. */
static inline __m256i code_integer(__m256 quotients, const struct group_terms *terms)
{
    const __m256 rounder = _mm256_set1_ps(12582912); /* its last place is 1 */
    __m256 limited = _mm256_max_ps(terms->low, _mm256_min_ps(terms->high, quotients));
    return _mm256_and_si256(_mm256_castps_si256(_mm256_add_ps(limited, rounder)), _mm256_set1_epi32(0xff));
}

/* Stores codes in numbers of 16 bits, four of each half of four vectors of quotients in turn. */
static inline void store_codes(uint8_t *codes, __m256i low, __m256i high)
{
    __m256i bytes = _mm256_packus_epi16(low, high);
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)(void *)codes, bytes);
}

/* Stores the codes of two or four vectors. */
static inline void store_parts(const __m256i *parts, int n, uint8_t *codes)
{
    __m256i low = _mm256_packus_epi32(parts[0], parts[1]);
    if (n == PARTS) {
        store_codes(codes, low, _mm256_packus_epi32(parts[2], parts[3]));
        return;
    }
    __m256i bytes = _mm256_packus_epi16(low, low);
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm_storeu_si128((__m128i *)(void *)codes, _mm256_castsi256_si128(bytes));
}

/* Makes the codes of two or four vectors of any values. */
static inline void encode_any(const float *values, int n, const struct group_terms *terms, quotient_function *quotient,
                              code_function *code, uint8_t *codes)
{
    __m256i parts[PARTS];
    for (int i = 0; i < n; i++)
        parts[i] = code(quotient(_mm256_loadu_ps(values + LANES * i), terms), terms);
    store_parts(parts, n, codes);
}

/* Makes the codes of two or four vectors of usual values. Returns false, and stores anything, if there are others. */
typedef bool encode_usual_function(const float *values, int n, const struct group_terms *terms, uint8_t *codes);

static inline bool encode_none(const float *values, int n, const struct group_terms *terms, uint8_t *codes)
{
    return false;
}

/* The codes of 16 numbers in BF16, of at least E4M3's least normal number. Sets what is not, infinity and NaN to
 * USUAL_E4M3 or more in `worst`. */
enum { LEAST_E4M3 = 0x3c80, LARGEST_E4M3 = 0x43e0, USUAL_E4M3 = 0x7f80 - LEAST_E4M3 };

static inline __m256i code_e4m3_of_bf16(__m256i numbers, __m256i *worst)
{
    /* The exponent of the least normal number becomes E4M3's 1. Half of the place that is dropped, less 1, and the bit
     * above it round half to even. */
    enum { DROPPED = 4, FIRST = 8 << DROPPED, HALF = 7 };
    __m256i magnitude = _mm256_and_si256(numbers, _mm256_set1_epi16(0x7fff));
    __m256i above = _mm256_sub_epi16(magnitude, _mm256_set1_epi16(LEAST_E4M3));
    *worst = _mm256_max_epu16(*worst, above);
    above = _mm256_min_epu16(above, _mm256_set1_epi16(LARGEST_E4M3 - LEAST_E4M3));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi16(above, DROPPED), _mm256_set1_epi16(1));
    __m256i rounded = _mm256_add_epi16(_mm256_add_epi16(above, _mm256_set1_epi16(FIRST + HALF)), odd);
    __m256i sign = _mm256_and_si256(_mm256_srli_epi16(numbers, 8), _mm256_set1_epi16(0x80));
    return _mm256_or_si256(_mm256_srli_epi16(rounded, DROPPED), sign);
}

/* Returns quotients whose upper halves are BF16, rounded: no quotient is half way between two. */
static inline __m256i bf16_quotients(const float *values, const struct group_terms *terms)
{
    __m256 products = _mm256_mul_ps(_mm256_loadu_ps(values), terms->reciprocal);
    return _mm256_add_epi32(_mm256_castps_si256(products), _mm256_set1_epi32(0x8000));
}

static inline bool encode_usual_e4m3_bf16(const float *values, int n, const struct group_terms *terms, uint8_t *codes)
{
    if (n < PARTS)
        return false;
    __m256i numbers[PARTS], worst = _mm256_setzero_si256();
    for (int i = 0; i < PARTS; i++)
        numbers[i] = _mm256_srli_epi32(bf16_quotients(values + LANES * i, terms), 16);
    __m256i low = code_e4m3_of_bf16(_mm256_packus_epi32(numbers[0], numbers[1]), &worst);
    __m256i high = code_e4m3_of_bf16(_mm256_packus_epi32(numbers[2], numbers[3]), &worst);
    store_codes(codes, low, high);
    __m256i unusual = _mm256_subs_epu16(worst, _mm256_set1_epi16(USUAL_E4M3 - 1));
    return _mm256_testz_si256(unusual, unusual);
}

static inline bool encode_usual_integer_bf16(const float *values, int n, const struct group_terms *terms,
                                             uint8_t *codes)
{
    __m256i parts[PARTS];
    for (int i = 0; i < n; i++) {
        __m256i rounded =
            _mm256_and_si256(bf16_quotients(values + LANES * i, terms), _mm256_set1_epi32((int)0xffff0000));
        parts[i] = code_integer(_mm256_castsi256_ps(rounded), terms);
    }
    store_parts(parts, n, codes);
    return true;
}

static inline void encode(const float *values, int n, const struct group_terms *terms, quotient_function *quotient,
                          encode_usual_function *encode_usual, code_function *code, uint8_t *codes)
{
    if (!encode_usual(values, n, terms, codes))
        encode_any(values, n, terms, quotient, code, codes);
}

static inline void encode_group(const float *values, size_t columns, const struct group_terms *terms,
                                quotient_function *quotient, encode_usual_function *encode_usual, code_function *code,
                                uint8_t *codes)
{
    size_t i = 0;
    for (; i + AT_ONCE <= columns; i += AT_ONCE)
        encode(values + i, PARTS, terms, quotient, encode_usual, code, codes + i);
    if (i + AT_ONCE / 2 <= columns) {
        encode(values + i, PARTS / 2, terms, quotient, encode_usual, code, codes + i);
        i += AT_ONCE / 2;
    }
    if (i < columns) {
        float last_values[AT_ONCE] = {0};
        uint8_t last_codes[AT_ONCE];
        memcpy(last_values, values + i, (columns - i) * sizeof *values);
        encode(last_values, PARTS, terms, quotient, encode_usual, code, last_codes);
        memcpy(codes + i, last_codes, columns - i);
    }
}

/* Sets the terms of one group. Returns if its divisor has a reciprocal that is rounded once, like a product with it. */
static inline bool set_terms(float divisor, const float *summand, struct group_terms *terms)
{
    terms->divisor = _mm256_set1_ps(divisor);
    terms->reciprocal = _mm256_div_ps(_mm256_set1_ps(1), terms->divisor);
    if (summand != NULL)
        terms->summand = _mm256_set1_ps(*summand);
    float magnitude = __builtin_fabsf(divisor);
    return magnitude > 0x1p-100f && magnitude < 0x1p100f;
}

static inline void encode_quotients(const struct quotients *quotients, const float *values, size_t n, size_t columns,
                                    quotient_function *quotient, encode_usual_function *encode_usual,
                                    code_function *code, uint8_t *codes)
{
    const float *summands = quotients->summands;
    struct group_terms terms = {.low = _mm256_set1_ps(quotients->low), .high = _mm256_set1_ps(quotients->high)};
    for (size_t group = 0; group < n; group++, values += columns, codes += columns) {
        if (set_terms(quotients->divisors[group], summands == NULL ? NULL : &summands[group], &terms))
            encode_group(values, columns, &terms, quotient, encode_usual, code, codes);
        else
            encode_group(values, columns, &terms, quotient, encode_none, code, codes);
    }
}

#define DEFINE_QUOTIENTS(type)                                                                                         \
    static inline __m256 quotients_##type(__m256 values, const struct group_terms *terms)                              \
    {                                                                                                                  \
        return round_##type(_mm256_div_ps(values, terms->divisor));                                                    \
    }                                                                                                                  \
    static inline __m256 sums_##type(__m256 values, const struct group_terms *terms)                                   \
    {                                                                                                                  \
        return round_##type(_mm256_add_ps(quotients_##type(values, terms), terms->summand));                           \
    }

DEFINE_QUOTIENTS(f32)
DEFINE_QUOTIENTS(bf16)
DEFINE_QUOTIENTS(f16)

/* Makes codes of quotients whose distances from the nearest levels are exact numbers of every type. */
static inline bool encode_near(const float *values, int n, const struct group_terms *terms, quotient_function *quotient,
                               uint8_t *codes)
{
    enum { ELEVEN = 0x41300000 };
    __m256i parts[PARTS], largest = _mm256_setzero_si256();
    for (int i = 0; i < n; i++) {
        __m256 quotients = quotient(_mm256_loadu_ps(values + LANES * i), terms);
        __m256i magnitude = magnitude_bits(quotients), place = place_e2m1(magnitude, false);
        largest = _mm256_max_epi32(largest, magnitude);
        parts[i] = _mm256_or_si256(place, sign_e2m1(quotients, place));
    }
    store_parts(parts, n, codes);
    __m256i is_far = _mm256_cmpgt_epi32(largest, _mm256_set1_epi32(ELEVEN));
    return _mm256_testz_si256(is_far, is_far);
}

#define DEFINE_ENCODE(name, type, encode_usual, code)                                                                  \
    FOR_AVX2 void grouped_##name##_##type##_avx2(const struct quotients *quotients, const float *values, size_t n,     \
                                                 size_t columns, uint8_t *codes)                                       \
    {                                                                                                                  \
        if (quotients->summands == NULL)                                                                               \
            encode_quotients(quotients, values, n, columns, quotients_##type, encode_usual, code, codes);              \
        else                                                                                                           \
            encode_quotients(quotients, values, n, columns, sums_##type, encode_none, code, codes);                    \
    }

#define DEFINE_E2M1(type)                                                                                              \
    static inline bool encode_near_##type(const float *values, int n, const struct group_terms *terms, uint8_t *codes) \
    {                                                                                                                  \
        return encode_near(values, n, terms, quotients_##type, codes);                                                 \
    }                                                                                                                  \
    static inline __m256i code_e2m1_by_##type##_distance(__m256 quotients, const struct group_terms *terms)            \
    {                                                                                                                  \
        return code_e2m1_by_distance(quotients, round_##type);                                                         \
    }                                                                                                                  \
    DEFINE_ENCODE(e2m1, type, encode_none, code_e2m1)                                                                  \
    DEFINE_ENCODE(e2m1_down, type, encode_near_##type, code_e2m1_by_##type##_distance)                                 \
    DEFINE_ENCODE(e2m1_exact, type, encode_near_##type, code_e2m1_by_f32_distance)

DEFINE_E2M1(f32)
DEFINE_E2M1(bf16)
DEFINE_E2M1(f16)
DEFINE_ENCODE(e4m3, f32, encode_none, code_e4m3)
DEFINE_ENCODE(e4m3, bf16, encode_usual_e4m3_bf16, code_e4m3)
DEFINE_ENCODE(e4m3, f16, encode_none, code_e4m3)
DEFINE_ENCODE(integer, f32, encode_none, code_integer)
DEFINE_ENCODE(integer, bf16, encode_usual_integer_bf16, code_integer)
DEFINE_ENCODE(integer, f16, encode_none, code_integer)

/* Affine groups by hand.
 *
 * extremes(): compilers make vectors of the portable loop, too, but reduce the vectors of each group by themselves,
 * which takes as long as reading a group of 64 values. Here the vectors of eight groups are reduced together.
 *
 * steps(): values are multiplied by the reciprocal of the divisor, in fixed point, instead of divided by it. They are
 * divided only where a step is too close to half way between two codes, where a code has more than 6 bits, which leaves
 * too few bits for the fraction, and where a group lies much farther from zero than it is wide. */

enum {
    AFFINE_LANES = 8,
    GROUPS_AT_ONCE = 8,
    AFFINE_AT_ONCE = 32,
    AFFINE_PARTS = AFFINE_AT_ONCE / AFFINE_LANES,
    MOST_PARTS = 4
};

typedef __m256 choose_function(__m256 a, __m256 b);

static inline __m256 choose_lower(__m256 a, __m256 b)
{
    return _mm256_min_ps(a, b);
}

static inline __m256 choose_higher(__m256 a, __m256 b)
{
    return _mm256_max_ps(a, b);
}

/* Returns, for each of eight vectors, what is chosen of its numbers. */
static inline __m256 choose_of_each(const __m256 vectors[GROUPS_AT_ONCE], choose_function *choose)
{
    __m256 twos[4], fours[2];
    for (int i = 0; i < 4; i++)
        twos[i] = choose(_mm256_unpacklo_ps(vectors[2 * i], vectors[2 * i + 1]),
                         _mm256_unpackhi_ps(vectors[2 * i], vectors[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        fours[i] = choose(_mm256_shuffle_ps(twos[2 * i], twos[2 * i + 1], _MM_SHUFFLE(1, 0, 1, 0)),
                          _mm256_shuffle_ps(twos[2 * i], twos[2 * i + 1], _MM_SHUFFLE(3, 2, 3, 2)));
    return choose(_mm256_permute2f128_ps(fours[0], fours[1], 0x20), _mm256_permute2f128_ps(fours[0], fours[1], 0x31));
}

static inline void store_ranges(__m256 lows, __m256 highs, struct range *ret_ranges)
{
    __m256 zero = _mm256_setzero_ps();
    lows = _mm256_add_ps(lows, zero), highs = _mm256_add_ps(highs, zero); /* -0 becomes 0 */
    __m256 even = _mm256_unpacklo_ps(lows, highs), odd = _mm256_unpackhi_ps(lows, highs);
    _mm256_storeu_ps(&ret_ranges[0].low, _mm256_permute2f128_ps(even, odd, 0x20));
    _mm256_storeu_ps(&ret_ranges[AFFINE_LANES / 2].low, _mm256_permute2f128_ps(even, odd, 0x31));
}

/* If one of two numbers compared is NaN, the second is chosen. */
static inline void extremes_of_eight(const float *values, size_t columns, struct range *ret_ranges)
{
    __m256 lows[GROUPS_AT_ONCE], highs[GROUPS_AT_ONCE];
    for (size_t group = 0; group < GROUPS_AT_ONCE; group++, values += columns) {
        lows[group] = _mm256_set1_ps(__builtin_inff()), highs[group] = _mm256_set1_ps(-__builtin_inff());
        for (size_t i = 0; i < columns; i += AFFINE_LANES) {
            __m256 loaded = _mm256_loadu_ps(values + i);
            lows[group] = _mm256_min_ps(loaded, lows[group]);
            highs[group] = _mm256_max_ps(loaded, highs[group]);
        }
    }
    store_ranges(choose_of_each(lows, choose_lower), choose_of_each(highs, choose_higher), ret_ranges);
}

FOR_AVX2 void grouped_extremes_avx2(const float *values, size_t n, size_t columns, struct range *ret_ranges)
{
    size_t group = 0;
    for (; columns % AFFINE_LANES == 0 && group + GROUPS_AT_ONCE <= n; group += GROUPS_AT_ONCE)
        extremes_of_eight(values + group * columns, columns, &ret_ranges[group]);
    grouped_portable.extremes(values + group * columns, n - group, columns, &ret_ranges[group]);
}

/* In fixed point, a value's sum is
 *
 *     value * reciprocal + summand, with summand = FIRST + 0.5 + CLOSE units - edge * reciprocal
 *
 * which is FIRST plus its number of steps, rounded by adding a half. As a float between 128 and 256, the sum has
 * FIRST_BITS plus the code in its upper 16 bits, and the fraction, in units of 2^-16, in its lower 16 bits.
 *
 * For at most 64 steps the sum is off by less than CLOSE units: the portable kernel rounds the difference and the
 * quotient, by a quarter of a unit each; this one rounds the reciprocal, by a quarter of a unit (a whole one if it is
 * subnormal), and the summand and the sum, by half a unit each. So the code is certain if the fraction is above twice
 * CLOSE units. */
enum { FIRST_BITS = 0x4300, LARGEST_CODE = 0x7f, LARGEST_HIGH = 63, CLOSE = 3 };

#define AFFINE_FIRST 128.0f
#define UNIT         0x1p-16f

static inline __m256i sums(const float *values, __m256 reciprocal, __m256 summand)
{
    return _mm256_castps_si256(_mm256_fmadd_ps(_mm256_loadu_ps(values), reciprocal, summand));
}

/* The codes and the fractions of 16 values: the first eight values have the even places, the others the odd ones. */
struct steps {
    __m256i codes, fractions;
};

static inline struct steps steps_of(const float *values, __m256 reciprocal, __m256 summand)
{
    enum { ODD = 0xaa };
    __m256i even = sums(values, reciprocal, summand), odd = sums(values + AFFINE_LANES, reciprocal, summand);
    __m256i codes = _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, ODD);
    return (struct steps){_mm256_sub_epi16(codes, _mm256_set1_epi16(FIRST_BITS)),
                          _mm256_blend_epi16(even, _mm256_slli_epi32(odd, 16), ODD)};
}

/* Encodes 32 values. Returns 1 if a code is uncertain: too close to the next one, far below zero, or made from NaN. */
static inline unsigned encode_steps(const float *values, __m256 reciprocal, __m256 summand, __m256i high,
                                    uint8_t *codes)
{
    const __m256i in_order = _mm256_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15, 0, 2, 4, 6, 1, 3, 5,
                                              7, 8, 10, 12, 14, 9, 11, 13, 15);
    struct steps first = steps_of(values, reciprocal, summand),
                 second = steps_of(values + AFFINE_AT_ONCE / 2, reciprocal, summand);
    __m256i bytes = _mm256_shuffle_epi8(_mm256_packus_epi16(first.codes, second.codes), in_order);
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)(void *)codes, _mm256_min_epu8(bytes, high));
    __m256i close =
        _mm256_subs_epu16(_mm256_set1_epi16(2 * CLOSE + 1), _mm256_min_epu16(first.fractions, second.fractions));
    __m256i far = _mm256_subs_epu16(_mm256_max_epu16(first.codes, second.codes), _mm256_set1_epi16(LARGEST_CODE));
    __m256i unusual = _mm256_or_si256(close, far);
    return !_mm256_testz_si256(unusual, unusual);
}

/* Encodes 32 values like the portable kernel. */
static inline void divide(const float *values, float edge, float divisor, float high, uint8_t *codes)
{
    const __m256 rounder = _mm256_set1_ps(12582912); /* its last place is 1 */
    __m256i parts[AFFINE_PARTS];
    for (int i = 0; i < AFFINE_PARTS; i++) {
        __m256 above = _mm256_sub_ps(_mm256_loadu_ps(values + AFFINE_LANES * i), _mm256_set1_ps(edge));
        __m256 quotient = _mm256_div_ps(above, _mm256_set1_ps(divisor));
        __m256 limited = _mm256_max_ps(_mm256_setzero_ps(), _mm256_min_ps(_mm256_set1_ps(high), quotient));
        parts[i] = _mm256_and_si256(_mm256_castps_si256(_mm256_add_ps(limited, rounder)), _mm256_set1_epi32(0xff));
    }
    _mm256_storeu_si256((__m256i *)(void *)codes, to_bytes(parts));
}

/* The factors and summands of sums(), for each group. */
struct terms {
    float reciprocals[GROUPS_AT_ONCE], summands[GROUPS_AT_ONCE];
};

/* Returns if the summands are rounded by no more than half a unit. */
static inline bool find_terms(const float *edges, const float *divisors, struct terms *ret_terms)
{
    const __m256 from = _mm256_set1_ps(AFFINE_FIRST + 0.5f + CLOSE * UNIT), sign = _mm256_set1_ps(-0.0f);
    __m256 reciprocals = _mm256_div_ps(_mm256_set1_ps(1), _mm256_loadu_ps(divisors));
    __m256 summands = _mm256_fnmadd_ps(_mm256_loadu_ps(edges), reciprocals, from);
    _mm256_storeu_ps(ret_terms->reciprocals, reciprocals);
    _mm256_storeu_ps(ret_terms->summands, summands);
    __m256 good = _mm256_cmp_ps(_mm256_andnot_ps(sign, summands), _mm256_set1_ps(2 * AFFINE_FIRST), _CMP_LT_OQ);
    return _mm256_movemask_ps(good) == (1 << GROUPS_AT_ONCE) - 1;
}

/* Encodes groups, and then divides in the blocks of 32 values that have an uncertain code: these come too often, and
 * too irregularly, for a branch in the loop. Blocks are numbered across groups. */
static inline void encode_groups(const float *values, size_t n_parts, const float *edges, const float *divisors,
                                 const struct terms *terms, float high, uint8_t *codes)
{
    enum { MOST_BLOCKS = GROUPS_AT_ONCE * MOST_PARTS };
    struct place {
        unsigned group, block;
    } unusual[MOST_BLOCKS + 1];
    unsigned n_unusual = 0, block = 0;
    for (unsigned group = 0; group < GROUPS_AT_ONCE; group++)
        for (unsigned end = block + (unsigned)n_parts; block < end; block++) {
            unusual[n_unusual] = (struct place){group, block};
            n_unusual += encode_steps(values + AFFINE_AT_ONCE * block, _mm256_set1_ps(terms->reciprocals[group]),
                                      _mm256_set1_ps(terms->summands[group]), _mm256_set1_epi8((char)high),
                                      codes + AFFINE_AT_ONCE * block);
        }
    for (unsigned i = 0; i < n_unusual; i++) {
        struct place place = unusual[i];
        divide(values + AFFINE_AT_ONCE * place.block, edges[place.group], divisors[place.group], high,
               codes + AFFINE_AT_ONCE * place.block);
    }
}

/* Not inlined: encode_groups() would get fewer registers beside it. */
static __attribute__((noinline)) void divide_groups(const float *values, size_t n_parts, const float *edges,
                                                    const float *divisors, float high, uint8_t *codes)
{
    for (size_t block = 0; block < GROUPS_AT_ONCE * n_parts; block++)
        divide(values + AFFINE_AT_ONCE * block, edges[block / n_parts], divisors[block / n_parts], high,
               codes + AFFINE_AT_ONCE * block);
}

FOR_AVX2 void grouped_steps_avx2(const float *values, size_t n, size_t columns, const float *edges,
                                 const float *divisors, float high, uint8_t *codes)
{
    size_t group = 0, n_parts = columns / AFFINE_AT_ONCE;
    bool fits = columns % AFFINE_AT_ONCE == 0 && n_parts <= MOST_PARTS;
    for (; fits && group + GROUPS_AT_ONCE <= n; group += GROUPS_AT_ONCE) {
        size_t at = group * columns;
        struct terms terms;
        if (high <= LARGEST_HIGH && find_terms(edges + group, divisors + group, &terms))
            encode_groups(values + at, n_parts, edges + group, divisors + group, &terms, high, codes + at);
        else
            divide_groups(values + at, n_parts, edges + group, divisors + group, high, codes + at);
    }
    grouped_portable.steps(values + group * columns, n - group, columns, edges + group, divisors + group, high,
                           codes + group * columns);
}
