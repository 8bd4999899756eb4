#include "base/checked.h"
#include "quant/avx2.h"
#include "quant/dtype.h"
#include "quant/iq4.h"

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

/* Returns the value of the nearest level. */
static inline __m256 nearest_number(__m256 value)
{
    __m256 lower = _mm256_setr_ps(-127, -83, -49, -22, 1, 25, 53, 89),
           upper = _mm256_setr_ps(-104, -65, -35, -10, 13, 38, 69, 113);
    struct nearest nearest = find_nearest(value);
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(lower, nearest.pair),
                            _mm256_permutevar8x32_ps(upper, nearest.pair), nearest.upper);
}

static float search(const float *values, const float *weights)
{
    float largest = signed_largest(values);
    if (__builtin_fabsf(largest) < IQ4_NEGLIGIBLE)
        return 0;
    float inverses[IQ4_TRIES], sums_qx[IQ4_TRIES], sums_q2[IQ4_TRIES];
    iq4_inverses(largest, inverses);
    __m256 inverse[2] = {_mm256_loadu_ps(inverses), _mm256_loadu_ps(inverses + 8)};
    __m256 sum_qx[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()},
           sum_q2[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int i = 0; i < IQ4_ELEMENTS; i++) {
        __m256 value = _mm256_set1_ps(values[i]), weight = _mm256_set1_ps(weights[i]);
        for (int j = 0; j < 2; j++) {
            __m256 q = nearest_number(_mm256_mul_ps(inverse[j], value)), weighted = _mm256_mul_ps(weight, q);
            sum_qx[j] = _mm256_add_ps(sum_qx[j], _mm256_mul_ps(weighted, value));
            sum_q2[j] = _mm256_add_ps(sum_q2[j], _mm256_mul_ps(weighted, q));
        }
    }
    for (int j = 0; j < 2; j++) {
        _mm256_storeu_ps(sums_qx + 8 * j, sum_qx[j]);
        _mm256_storeu_ps(sums_q2 + 8 * j, sum_q2[j]);
    }
    return iq4_best_scale(sums_qx, sums_q2);
}

static void quantize(const float *values, float inverse, uint8_t levels[IQ4_ELEMENTS])
{
    struct values32 loaded = load_values(values);
    __m256i integers[4];
    for (int i = 0; i < 4; i++) {
        struct nearest nearest = find_nearest(_mm256_mul_ps(loaded.part[i], _mm256_set1_ps(inverse)));
        integers[i] =
            _mm256_sub_epi32(_mm256_add_epi32(nearest.pair, nearest.pair), _mm256_castps_si256(nearest.upper));
    }
    _mm256_storeu_si256((__m256i *)(void *)levels, to_bytes(integers));
}

const struct iq4_loops iq4_avx2_loops = {search, quantize};

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
    enum { SUB_BLOCKS = 8, SCALES_H = 2, SCALES_L = 4, QS = 8, BLOCK_BYTES = 136 };
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES) {
        float d = load_scale(block);
        unsigned high = (unsigned)read_le(block + SCALES_H, 2), low = (unsigned)read_le(block + SCALES_L, 4);
        for (int j = 0; j < SUB_BLOCKS; j++, values += IQ4_ELEMENTS) {
            int scale = (int)((low >> (4 * j) & 15) | (high >> (2 * j) & 3) << 4) - 32;
            decode_levels(block + QS + 16 * j, d * (float)scale, values);
        }
    }
}
