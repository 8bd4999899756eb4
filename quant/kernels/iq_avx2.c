/* IQ1, IQ2 and IQ3, eight tries or neighbours at a time. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/iq1.h"

#include <immintrin.h>

#define LANES         8
#define IQ_NAME(name) name##_avx2
#define IQ1_LOOPS     iq1_avx2_loops

#include "quant/kernels/vectors.h"

static const vi lane_numbers = {0, 1, 2, 3, 4, 5, 6, 7};
#define table_places lane_numbers

/* Returns numbers of a table of eight, by the lowest three bits. */
static inline vf v_look_up(vt table, vi index)
{
    return _mm256_permutevar8x32_ps(table, (__m256i)index);
}

static inline float v_least(vf values)
{
    vf least = _mm256_min_ps(values, _mm256_permute2f128_ps(values, values, 1));
    least = _mm256_min_ps(least, _mm256_permute_ps(least, _MM_SHUFFLE(1, 0, 3, 2)));
    return _mm256_cvtss_f32(_mm256_min_ps(least, _mm256_permute_ps(least, _MM_SHUFFLE(2, 3, 0, 1))));
}

/* Returns a / b, off by at most V_QUOTIENT_ERROR of it. */
#define V_QUOTIENT_ERROR 0x1.8p-12f
static inline vf v_about_quotient(vf a, vf b)
{
    return a * _mm256_rcp_ps(b);
}

static inline uint32_t v_lanes_unlike(vi a, vi b)
{
    return ~(uint32_t)_mm256_movemask_ps((vf)_mm256_cmpeq_epi32((__m256i)a, (__m256i)b)) & 0xff;
}

/* Shifts every lane one further, after the last lane of `before`. */
static inline vi v_one_later(vi before, vi lanes)
{
    __m256i between = _mm256_permute2x128_si256((__m256i)before, (__m256i)lanes, 0x21);
    return (vi)_mm256_alignr_epi8((__m256i)lanes, between, 12);
}

/* Returns the first n lanes of `lanes`, the others of `rest`. */
static inline vi v_first_lanes(int n, vi lanes, vi rest)
{
    __m256i kept = _mm256_cmpgt_epi32(_mm256_set1_epi32(n), (__m256i)lane_numbers);
    return (vi)_mm256_blendv_epi8((__m256i)rest, (__m256i)lanes, kept);
}

static inline vt v_repeat_four(float a, float b, float c, float d)
{
    return _mm256_setr_ps(a, b, c, d, a, b, c, d);
}

#include "quant/kernels/iq_simd.h"

#include "quant/kernels/iq1_simd.h"

static inline void decode_group(const uint8_t magnitudes[8], const uint8_t levels[IQ_GROUP], uint8_t signs, float scale,
                                float *values)
{
    const __m256i to_sign = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    __m128i loaded = _mm_loadl_epi64((const __m128i *)(const void *)levels);
    __m128i bytes = _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)(const void *)magnitudes), loaded);
    __m256 scaled = _mm256_mul_ps(_mm256_set1_ps(scale), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)));
    __m256i negative = _mm256_sllv_epi32(_mm256_set1_epi32(signs), to_sign);
    negative = _mm256_and_si256(negative, _mm256_set1_epi32(INT32_MIN));
    _mm256_storeu_ps(values, _mm256_xor_ps(scaled, _mm256_castsi256_ps(negative)));
}

void iq_decode_avx2(const struct iq_format *format, const uint8_t *blocks, float *values, size_t n_blocks)
{
    iq_decode_by(decode_group, format, blocks, values, n_blocks);
}

/* The decoders of IQ1_S and IQ1_M, a point of eight values at a time. */

decode_function iq1_s_decode_avx2, iq1_m_decode_avx2;

static inline void decode_point(const uint8_t levels[IQ_GROUP], float scale, float shift, float *values)
{
    __m256i eight = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)levels));
    __m256 number = _mm256_cvtepi32_ps(_mm256_sub_epi32(eight, _mm256_set1_epi32(1)));
    number = _mm256_add_ps(number, _mm256_set1_ps(shift));
    _mm256_storeu_ps(values, _mm256_mul_ps(_mm256_set1_ps(scale), number));
}

void iq1_s_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    iq1_s_decode_by(decode_point, blocks, values, n_blocks);
}

void iq1_m_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    iq1_m_decode_by(decode_point, blocks, values, n_blocks);
}
