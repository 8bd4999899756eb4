/* Affine groups by hand.
 *
 * extremes(): compilers make vectors of the portable loop, too, but reduce the vectors of each group by themselves,
 * which takes as long as reading a group of 64 values. Here the vectors of eight groups are reduced together.
 *
 * steps(): values are multiplied by the reciprocal of the divisor, in fixed point, instead of divided by it. They are
 * divided only where a step is too close to half way between two codes, where a code has more than 6 bits, which leaves
 * too few bits for the fraction, and where a group lies much farther from zero than it is wide. */
#include "quant/kernels/avx2.h"
#include "quant/pack/grouped_kernels.h"

#include <stdbool.h>

enum { LANES = 8, GROUPS_AT_ONCE = 8, AT_ONCE = 32, PARTS = AT_ONCE / LANES, MOST_PARTS = 4 };

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
    _mm256_storeu_ps(&ret_ranges[LANES / 2].low, _mm256_permute2f128_ps(even, odd, 0x31));
}

/* If one of two numbers compared is NaN, the second is chosen. */
static inline void extremes_of_eight(const float *values, size_t columns, struct range *ret_ranges)
{
    __m256 lows[GROUPS_AT_ONCE], highs[GROUPS_AT_ONCE];
    for (size_t group = 0; group < GROUPS_AT_ONCE; group++, values += columns) {
        lows[group] = _mm256_set1_ps(__builtin_inff()), highs[group] = _mm256_set1_ps(-__builtin_inff());
        for (size_t i = 0; i < columns; i += LANES) {
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
    for (; columns % LANES == 0 && group + GROUPS_AT_ONCE <= n; group += GROUPS_AT_ONCE)
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

#define FIRST 128.0f
#define UNIT  0x1p-16f

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
    __m256i even = sums(values, reciprocal, summand), odd = sums(values + LANES, reciprocal, summand);
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
                 second = steps_of(values + AT_ONCE / 2, reciprocal, summand);
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
    __m256i parts[PARTS];
    for (int i = 0; i < PARTS; i++) {
        __m256 above = _mm256_sub_ps(_mm256_loadu_ps(values + LANES * i), _mm256_set1_ps(edge));
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
    const __m256 from = _mm256_set1_ps(FIRST + 0.5f + CLOSE * UNIT), sign = _mm256_set1_ps(-0.0f);
    __m256 reciprocals = _mm256_div_ps(_mm256_set1_ps(1), _mm256_loadu_ps(divisors));
    __m256 summands = _mm256_fnmadd_ps(_mm256_loadu_ps(edges), reciprocals, from);
    _mm256_storeu_ps(ret_terms->reciprocals, reciprocals);
    _mm256_storeu_ps(ret_terms->summands, summands);
    __m256 good = _mm256_cmp_ps(_mm256_andnot_ps(sign, summands), _mm256_set1_ps(2 * FIRST), _CMP_LT_OQ);
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
            n_unusual += encode_steps(values + AT_ONCE * block, _mm256_set1_ps(terms->reciprocals[group]),
                                      _mm256_set1_ps(terms->summands[group]), _mm256_set1_epi8((char)high),
                                      codes + AT_ONCE * block);
        }
    for (unsigned i = 0; i < n_unusual; i++) {
        struct place place = unusual[i];
        divide(values + AT_ONCE * place.block, edges[place.group], divisors[place.group], high,
               codes + AT_ONCE * place.block);
    }
}

/* Not inlined: encode_groups() would get fewer registers beside it. */
static __attribute__((noinline)) void divide_groups(const float *values, size_t n_parts, const float *edges,
                                                    const float *divisors, float high, uint8_t *codes)
{
    for (size_t block = 0; block < GROUPS_AT_ONCE * n_parts; block++)
        divide(values + AT_ONCE * block, edges[block / n_parts], divisors[block / n_parts], high,
               codes + AT_ONCE * block);
}

FOR_AVX2 void grouped_steps_avx2(const float *values, size_t n, size_t columns, const float *edges,
                                 const float *divisors, float high, uint8_t *codes)
{
    size_t group = 0, n_parts = columns / AT_ONCE;
    bool fits = columns % AT_ONCE == 0 && n_parts <= MOST_PARTS;
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
