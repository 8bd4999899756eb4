#include "base/checked.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/iq4.h"
#include "quant/kernels/avx2.h"

/* The level nearest to each value: 2 * `pair`, plus 1 where `upper` is set. Found by bisection: comparisons select the
 * next midpoint. */
struct nearest {
    __m256i pair;
    __m256 upper;
};

static inline __m256 not_less(__m256 a, __m256 b)
{
    return _mm256_cmp_ps(a, b, _CMP_GE_OQ);
}

static inline __m256i bit_where(__m256 mask, int bit)
{
    return _mm256_and_si256(_mm256_castps_si256(mask), _mm256_set1_epi32(bit));
}

static inline struct nearest find_nearest(__m256 value)
{
    const float *m = iq4_midpoints;
    __m256 eighths = _mm256_setr_ps(m[1], m[5], m[9], m[13], m[1], m[5], m[9], m[13]);
    __m256 sixteenths = _mm256_setr_ps(m[0], m[2], m[4], m[6], m[8], m[10], m[12], m[14]);
    __m256 half = not_less(value, _mm256_set1_ps(m[7]));
    __m256 quarter = not_less(value, _mm256_blendv_ps(_mm256_set1_ps(m[3]), _mm256_set1_ps(m[11]), half));
    __m256i upper_bits = _mm256_or_si256(bit_where(half, 2), bit_where(quarter, 1));
    __m256 eighth = not_less(value, _mm256_permutevar_ps(eighths, upper_bits));
    __m256i pair = _mm256_or_si256(_mm256_add_epi32(upper_bits, upper_bits), bit_where(eighth, 1));
    return (struct nearest){pair, not_less(value, _mm256_permutevar8x32_ps(sixteenths, pair))};
}

/* The values of levels. */
static inline __m256 numbers_of_even(void)
{
    return _mm256_setr_ps(-127, -83, -49, -22, 1, 25, 53, 89);
}

static inline __m256 numbers_of_odd(void)
{
    return _mm256_setr_ps(-104, -65, -35, -10, 13, 38, 69, 113);
}

/* Looks up a level in a table, given as that of even levels and that of odd ones. */
static inline __m256 look_up(struct nearest level, __m256 even, __m256 odd)
{
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(even, level.pair), _mm256_permutevar8x32_ps(odd, level.pair),
                            level.upper);
}

static inline __m256 nearest_number(__m256 value)
{
    return look_up(find_nearest(value), numbers_of_even(), numbers_of_odd());
}

/* What each value adds to the sums, and the midpoint that decides. */
struct choices {
    float midpoint[IQ4_ELEMENTS];
    struct terms {
        float first[IQ4_ELEMENTS];   /* of the first try */
        float below[IQ4_ELEMENTS];   /* of the others, below the midpoint */
        float changes[IQ4_ELEMENTS]; /* the bits that are others from it on */
    } qx, q2;
};

/* Sets the terms of eight values for the level numbers q: weight * q * factor. */
static inline void set_terms(struct terms *terms, int at, __m256 weight, const __m256 q[3], const __m256 factor[3])
{
    __m256 below = _mm256_mul_ps(_mm256_mul_ps(weight, q[1]), factor[1]);
    __m256 above = _mm256_mul_ps(_mm256_mul_ps(weight, q[2]), factor[2]);
    _mm256_storeu_ps(terms->first + at, _mm256_mul_ps(_mm256_mul_ps(weight, q[0]), factor[0]));
    _mm256_storeu_ps(terms->below + at, below);
    _mm256_storeu_ps(terms->changes + at, _mm256_xor_ps(below, above));
}

/* The terms of eight tries for the value at a place. */
static inline __m256 terms_at(const struct terms *terms, int at, __m256 above)
{
    return _mm256_xor_ps(_mm256_set1_ps(terms->below[at]), _mm256_and_ps(above, _mm256_set1_ps(terms->changes[at])));
}

static inline __m256i level_of(struct nearest nearest)
{
    return _mm256_sub_epi32(_mm256_add_epi32(nearest.pair, nearest.pair), _mm256_castps_si256(nearest.upper));
}

static inline void find_choices(const float *values, const float *weights, const float inverses[IQ4_TRIES],
                                struct choices *choices)
{
    const float *m = iq4_midpoints;
    const __m256 even = _mm256_setr_ps(m[0], m[2], m[4], m[6], m[8], m[10], m[12], m[14]),
                 odd = _mm256_setr_ps(m[1], m[3], m[5], m[7], m[9], m[11], m[13], __builtin_inff()),
                 number_after_odd = _mm256_setr_ps(-83, -49, -22, 1, 25, 53, 89, 0);
    for (int i = 0; i < IQ4_ELEMENTS; i += 8) {
        __m256 value = _mm256_loadu_ps(values + i), weight = _mm256_loadu_ps(weights + i);
        __m256 a = _mm256_mul_ps(_mm256_set1_ps(inverses[1]), value);
        __m256 b = _mm256_mul_ps(_mm256_set1_ps(inverses[IQ4_TRIES - 1]), value);
        struct nearest least = find_nearest(_mm256_min_ps(a, b));
        _mm256_storeu_ps(choices->midpoint + i, look_up(least, even, odd));
        const __m256 q[3] = {nearest_number(_mm256_mul_ps(_mm256_set1_ps(inverses[0]), value)),
                             look_up(least, numbers_of_even(), numbers_of_odd()),
                             look_up(least, numbers_of_odd(), number_after_odd)};
        set_terms(&choices->qx, i, weight, q, (const __m256[3]){value, value, value});
        set_terms(&choices->q2, i, weight, q, q);
    }
}

static void sum_up(const float *values, const float *weights, const float inverses[IQ4_TRIES],
                   struct iq4_sums *ret_sums)
{
    struct choices choices;
    __m256 sum_qx[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()},
           sum_q2[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    find_choices(values, weights, inverses, &choices);
    for (int i = 0; i < IQ4_ELEMENTS; i++)
        for (int j = 0; j < 2; j++) {
            __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(inverses + 8 * j), _mm256_set1_ps(values[i]));
            __m256 above = not_less(scaled, _mm256_set1_ps(choices.midpoint[i]));
            __m256 qx = terms_at(&choices.qx, i, above), q2 = terms_at(&choices.q2, i, above);
            if (j == 0) {
                qx = _mm256_blend_ps(qx, _mm256_set1_ps(choices.qx.first[i]), 1);
                q2 = _mm256_blend_ps(q2, _mm256_set1_ps(choices.q2.first[i]), 1);
            }
            sum_qx[j] = _mm256_add_ps(sum_qx[j], qx);
            sum_q2[j] = _mm256_add_ps(sum_q2[j], q2);
        }
    for (int j = 0; j < 2; j++) {
        _mm256_storeu_ps(ret_sums->qx + 8 * j, sum_qx[j]);
        _mm256_storeu_ps(ret_sums->q2 + 8 * j, sum_q2[j]);
    }
}

static void quantize(const float *values, float inverse, uint8_t levels[IQ4_ELEMENTS])
{
    struct values32 loaded = load_values(values);
    __m256i integers[4];
    for (int i = 0; i < 4; i++)
        integers[i] = level_of(find_nearest(_mm256_mul_ps(loaded.part[i], _mm256_set1_ps(inverse))));
    _mm256_storeu_si256((__m256i *)(void *)levels, to_bytes(integers));
}

const struct iq4_loops iq4_avx2_loops = {signed_largest, sum_up, quantize};

decode_function iq4_nl_decode_avx2, iq4_xs_decode_avx2;

static inline void decode_levels(const uint8_t *qs, float scale, float *values)
{
    __m256i numbers = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)iq4_levels));
    store_scaled(values, _mm256_shuffle_epi8(numbers, load_nibbles(qs)), scale);
}

void iq4_nl_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    enum { QS = 2, BLOCK_BYTES = 18 };
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES, values += IQ4_ELEMENTS)
        decode_levels(block + QS, load_scale(block), values);
}

void iq4_xs_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += IQ4_XS_BYTES) {
        float d = load_scale(block);
        unsigned high = (unsigned)read_le(block + IQ4_XS_SCALES_H, 2),
                 low = (unsigned)read_le(block + IQ4_XS_SCALES_L, 4);
        for (int j = 0; j < IQ4_XS_SUB_BLOCKS; j++, values += IQ4_ELEMENTS) {
            int scale = (int)((low >> (4 * j) & 15) | (high >> (2 * j) & 3) << 4) - 32;
            decode_levels(block + IQ4_XS_QS + 16 * j, d * (float)scale, values);
        }
    }
}
