/* IQ1, IQ2 and IQ3, eight tries or neighbours at a time. */
#include <immintrin.h>
#include <stdint.h>

#define LANES         8
#define IQ_NAME(name) name##_avx2
#define IQ1_LOOPS     iq1_avx2_loops

typedef __m256 vf;
typedef int32_t vi __attribute__((vector_size(32)));

static const vi lane_numbers = {0, 1, 2, 3, 4, 5, 6, 7};

static inline vf v_load(const float *values)
{
    return _mm256_loadu_ps(values);
}

static inline void v_store(float *values, vf value)
{
    _mm256_storeu_ps(values, value);
}

static inline vf v_root(vf value)
{
    return _mm256_sqrt_ps(value);
}

static inline vi v_load_words(const uint16_t *words)
{
    return (vi)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)words));
}

/* The numbers of a table of eight, by the lowest three bits. */
static inline vf v_look_up(vf table, vi index)
{
    return _mm256_permutevar8x32_ps(table, (__m256i)index);
}

/* Within 0 .. most. */
static inline vi v_clamp(vi level, int most)
{
    return (vi)_mm256_min_epi32(_mm256_max_epi32((__m256i)level, _mm256_setzero_si256()), _mm256_set1_epi32(most));
}

/* Keeps what is less, and its place, if that is below `count`. */
static inline void v_keep_less(vf *least, vi *at, vf distance, vi place, int count)
{
    vf better = _mm256_cmp_ps(distance, *least, _CMP_LT_OQ);
    better = _mm256_and_ps(better, (vf)_mm256_cmpgt_epi32(_mm256_set1_epi32(count), (__m256i)place));
    *least = _mm256_blendv_ps(*least, distance, better);
    *at = (vi)_mm256_blendv_ps((vf)*at, (vf)place, better);
}

/* A bit for each lane that has the least value. */
static inline uint32_t v_lanes_of_least(vf values)
{
    vf least = _mm256_min_ps(values, _mm256_permute2f128_ps(values, values, 1));
    least = _mm256_min_ps(least, _mm256_permute_ps(least, _MM_SHUFFLE(1, 0, 3, 2)));
    least = _mm256_min_ps(least, _mm256_permute_ps(least, _MM_SHUFFLE(2, 3, 0, 1)));
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(values, least, _CMP_EQ_OQ));
}

/* A bit for each lane whose sums are better than the best so far, as the searches have it. */
static inline uint32_t v_better(vf sum_qx, vf sum_q2, float best)
{
    vf better = _mm256_cmp_ps(sum_qx * sum_qx, best * sum_q2, _CMP_GT_OQ);
    return (uint32_t)_mm256_movemask_ps(_mm256_and_ps(better, _mm256_cmp_ps(sum_q2, _mm256_setzero_ps(), _CMP_GT_OQ)));
}

static inline vf v_repeat_four(float a, float b, float c, float d)
{
    return _mm256_setr_ps(a, b, c, d, a, b, c, d);
}

/* A bit for each lane. */
static inline uint32_t v_lanes_less(vf values, float than)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(values, _mm256_set1_ps(than), _CMP_LT_OQ));
}

static inline uint32_t v_lanes_equal(vf values, float to)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(values, _mm256_set1_ps(to), _CMP_EQ_OQ));
}

#include "quant/iq_simd.h"

#include "quant/iq1_simd.h"

void iq_decode_avx2(const struct iq_format *format, const uint8_t *blocks, float *values, size_t n_blocks)
{
    const struct grid *grid = grid_of(format->grid);
    const __m128i table = _mm_loadl_epi64((const __m128i *)(const void *)format->magnitudes);
    const __m256i to_sign = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    for (size_t b = 0; b < n_blocks; b++, blocks += format->block_bytes) {
        struct iq_unpacked unpacked;
        format->unpack(blocks, &unpacked);
        for (int i = 0; i < IQ_ELEMENTS / IQ_GROUP; i++, values += IQ_GROUP) {
            uint8_t levels[IQ_GROUP];
            iq_load_levels(grid, unpacked.points, i, levels);
            __m128i loaded = _mm_loadl_epi64((const __m128i *)(const void *)levels);
            __m256i magnitudes = _mm256_cvtepu8_epi32(_mm_shuffle_epi8(table, loaded));
            __m256 scaled = _mm256_mul_ps(_mm256_set1_ps(unpacked.scales[i]), _mm256_cvtepi32_ps(magnitudes));
            __m256i signs = _mm256_sllv_epi32(_mm256_set1_epi32(unpacked.signs[i]), to_sign);
            signs = _mm256_and_si256(signs, _mm256_set1_epi32(INT32_MIN));
            _mm256_storeu_ps(values, _mm256_xor_ps(scaled, _mm256_castsi256_ps(signs)));
        }
    }
}
