/* E4M3 and integers by hand. Compilers, too, make vectors of the portable loops, 32 codes at a time, but they do
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
 * zeros, smaller numbers or NaN are made again, eight at a time. */
#include "quant/grouped_kernels.h"

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

/* Makes 32 codes of any values. */
static inline void encode_any(const float *values, const struct group_terms *terms, quotient_function *quotient,
                              code_function *code, uint8_t *codes)
{
    __m256i parts[PARTS];
    for (int i = 0; i < PARTS; i++)
        parts[i] = code(quotient(_mm256_loadu_ps(values + LANES * i), terms), terms);
    store_codes(codes, _mm256_packus_epi32(parts[0], parts[1]), _mm256_packus_epi32(parts[2], parts[3]));
}

/* Makes 32 codes of usual values. Returns false, and stores anything, if there are others. */
typedef bool encode_usual_function(const float *values, const struct group_terms *terms, uint8_t *codes);

static inline bool encode_none(const float *values, const struct group_terms *terms, uint8_t *codes)
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

static inline bool encode_usual_e4m3_bf16(const float *values, const struct group_terms *terms, uint8_t *codes)
{
    __m256i numbers[PARTS], worst = _mm256_setzero_si256();
    for (int i = 0; i < PARTS; i++)
        numbers[i] = _mm256_srli_epi32(bf16_quotients(values + LANES * i, terms), 16);
    __m256i low = code_e4m3_of_bf16(_mm256_packus_epi32(numbers[0], numbers[1]), &worst);
    __m256i high = code_e4m3_of_bf16(_mm256_packus_epi32(numbers[2], numbers[3]), &worst);
    store_codes(codes, low, high);
    __m256i unusual = _mm256_subs_epu16(worst, _mm256_set1_epi16(USUAL_E4M3 - 1));
    return _mm256_testz_si256(unusual, unusual);
}

static inline bool encode_usual_integer_bf16(const float *values, const struct group_terms *terms, uint8_t *codes)
{
    __m256i parts[PARTS];
    for (int i = 0; i < PARTS; i++) {
        __m256i rounded =
            _mm256_and_si256(bf16_quotients(values + LANES * i, terms), _mm256_set1_epi32((int)0xffff0000));
        parts[i] = code_integer(_mm256_castsi256_ps(rounded), terms);
    }
    store_codes(codes, _mm256_packus_epi32(parts[0], parts[1]), _mm256_packus_epi32(parts[2], parts[3]));
    return true;
}

static inline void encode_32(const float *values, const struct group_terms *terms, quotient_function *quotient,
                             encode_usual_function *encode_usual, code_function *code, uint8_t *codes)
{
    if (!encode_usual(values, terms, codes))
        encode_any(values, terms, quotient, code, codes);
}

static inline void encode_group(const float *values, size_t columns, const struct group_terms *terms,
                                quotient_function *quotient, encode_usual_function *encode_usual, code_function *code,
                                uint8_t *codes)
{
    size_t i = 0;
    for (; i + AT_ONCE <= columns; i += AT_ONCE)
        encode_32(values + i, terms, quotient, encode_usual, code, codes + i);
    if (i < columns) {
        float last_values[AT_ONCE] = {0};
        uint8_t last_codes[AT_ONCE];
        memcpy(last_values, values + i, (columns - i) * sizeof *values);
        encode_32(last_values, terms, quotient, encode_usual, code, last_codes);
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

#define DEFINE_ENCODE(name, type, encode_usual)                                                                        \
    FOR_AVX2 void grouped_##name##_##type##_avx2(const struct quotients *quotients, const float *values, size_t n,     \
                                                 size_t columns, uint8_t *codes)                                       \
    {                                                                                                                  \
        if (quotients->summands == NULL)                                                                               \
            encode_quotients(quotients, values, n, columns, quotients_##type, encode_usual, code_##name, codes);       \
        else                                                                                                           \
            encode_quotients(quotients, values, n, columns, sums_##type, encode_none, code_##name, codes);             \
    }

DEFINE_ENCODE(e4m3, f32, encode_none)
DEFINE_ENCODE(e4m3, bf16, encode_usual_e4m3_bf16)
DEFINE_ENCODE(e4m3, f16, encode_none)
DEFINE_ENCODE(integer, f32, encode_none)
DEFINE_ENCODE(integer, bf16, encode_usual_integer_bf16)
DEFINE_ENCODE(integer, f16, encode_none)
