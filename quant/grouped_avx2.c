/* E4M3, integers and steps by hand. Compilers, too, make vectors of the portable loops, 32 codes at a time, but they do
 * each operation for all 32 before the next one, which takes more registers than there are. Here eight values become
 * codes before the next eight are loaded. */
#include "quant/grouped_kernels.h"

#include <immintrin.h>
#include <string.h>

enum { AT_ONCE = 32, LANES = 8, PARTS = AT_ONCE / LANES };

/* What the codes of one group are made with. */
struct group_terms {
    __m256 divisor, summand; /* the summand of steps() is subtracted from values, that of encode() added to quotients */
    __m256 low, high;
};

/* Returns eight codes in the low bytes of the numbers, the rest of which are 0. */
typedef __m256i code_function(__m256 values, const struct group_terms *terms);

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
static inline __m256i code_e4m3(__m256 values, const struct group_terms *terms)
{
    const __m256i least_exponent = _mm256_set1_epi32(0x3c800000);
    __m256i all = _mm256_castps_si256(values),
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
static inline __m256i code_integer(__m256 values, const struct group_terms *terms)
{
    const __m256 rounder = _mm256_set1_ps(12582912); /* its last place is 1 */
    __m256 limited = _mm256_max_ps(terms->low, _mm256_min_ps(terms->high, values));
    return _mm256_and_si256(_mm256_castps_si256(_mm256_add_ps(limited, rounder)), _mm256_set1_epi32(0xff));
}

static inline void store_codes(uint8_t *codes, const __m256i parts[PARTS])
{
    __m256i low = _mm256_packus_epi32(parts[0], parts[1]), high = _mm256_packus_epi32(parts[2], parts[3]);
    __m256i bytes = _mm256_packus_epi16(low, high); /* four bytes of each half of the parts in turn */
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)(void *)codes, bytes);
}

static inline void encode_32(const float *values, const struct group_terms *terms, code_function *code, uint8_t *codes)
{
    __m256i parts[PARTS];
    for (int i = 0; i < PARTS; i++)
        parts[i] = code(_mm256_loadu_ps(values + LANES * i), terms);
    store_codes(codes, parts);
}

static inline void encode_group(const float *values, size_t columns, const struct group_terms *terms,
                                code_function *code, uint8_t *codes)
{
    size_t i = 0;
    for (; i + AT_ONCE <= columns; i += AT_ONCE)
        encode_32(values + i, terms, code, codes + i);
    if (i < columns) {
        float last_values[AT_ONCE] = {0};
        uint8_t last_codes[AT_ONCE];
        memcpy(last_values, values + i, (columns - i) * sizeof *values);
        encode_32(last_values, terms, code, last_codes);
        memcpy(codes + i, last_codes, columns - i);
    }
}

static inline void encode_quotients(const struct quotients *quotients, const float *values, size_t n, size_t columns,
                                    code_function *of_quotients, code_function *of_sums, uint8_t *codes)
{
    struct group_terms terms = {.low = _mm256_set1_ps(quotients->low), .high = _mm256_set1_ps(quotients->high)};
    for (size_t group = 0; group < n; group++, values += columns, codes += columns) {
        terms.divisor = _mm256_set1_ps(quotients->divisors[group]);
        if (quotients->summands == NULL) {
            encode_group(values, columns, &terms, of_quotients, codes);
            continue;
        }
        terms.summand = _mm256_set1_ps(quotients->summands[group]);
        encode_group(values, columns, &terms, of_sums, codes);
    }
}

#define DEFINE_QUOTIENTS(name, type)                                                                                   \
    static inline __m256i name##_of_quotients_##type(__m256 values, const struct group_terms *terms)                   \
    {                                                                                                                  \
        return code_##name(round_##type(_mm256_div_ps(values, terms->divisor)), terms);                                \
    }                                                                                                                  \
    static inline __m256i name##_of_sums_##type(__m256 values, const struct group_terms *terms)                        \
    {                                                                                                                  \
        __m256 quotients = round_##type(_mm256_div_ps(values, terms->divisor));                                        \
        return code_##name(round_##type(_mm256_add_ps(quotients, terms->summand)), terms);                             \
    }                                                                                                                  \
    FOR_AVX2 void grouped_##name##_##type##_avx2(const struct quotients *quotients, const float *values, size_t n,     \
                                                 size_t columns, uint8_t *codes)                                       \
    {                                                                                                                  \
        encode_quotients(quotients, values, n, columns, name##_of_quotients_##type, name##_of_sums_##type, codes);     \
    }

DEFINE_QUOTIENTS(e4m3, f32)
DEFINE_QUOTIENTS(e4m3, bf16)
DEFINE_QUOTIENTS(e4m3, f16)
DEFINE_QUOTIENTS(integer, f32)
DEFINE_QUOTIENTS(integer, bf16)
DEFINE_QUOTIENTS(integer, f16)

static inline __m256i steps_from_edge(__m256 values, const struct group_terms *terms)
{
    return code_integer(_mm256_div_ps(_mm256_sub_ps(values, terms->summand), terms->divisor), terms);
}

FOR_AVX2 void grouped_steps_avx2(const float *values, size_t n, size_t columns, const float *edges,
                                 const float *divisors, float high, uint8_t *codes)
{
    struct group_terms terms = {.low = _mm256_setzero_ps(), .high = _mm256_set1_ps(high)};
    for (size_t group = 0; group < n; group++, values += columns, codes += columns) {
        terms.summand = _mm256_set1_ps(edges[group]);
        terms.divisor = _mm256_set1_ps(divisors[group]);
        encode_group(values, columns, &terms, steps_from_edge, codes);
    }
}
