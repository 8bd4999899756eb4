/* Shared by the AVX2 kernels of the formats of 32 values. Each gives the bits of its portable twin in
 * quant/blocks/block32.h: the order of operations within a value is the same, and reductions over a block (largest,
 * smallest) do not depend on the order, except for the sign of zeros, which is handled. A NaN never wins a comparison
 * in either.
 *
 * The chain of operations from a block's values to its scale is too long for a processor to overlap two of them well.
 * So blocks are encoded in batches: the range of each block, then all scales at once, then the levels of each. */
#pragma once

#include "quant/blocks/q4_q5.h"

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum { BATCH = 8 };

/* The scales of a batch, their inverses (0 for none) and their stored form. */
struct scales {
    float scale[BATCH], inverse[BATCH];
    uint16_t half[BATCH];
};

struct values32 {
    __m256 part[4];
};

static inline struct values32 load_values(const float *values)
{
    struct values32 loaded;
    for (int i = 0; i < 4; i++)
        loaded.part[i] = _mm256_loadu_ps(values + 8 * i);
    return loaded;
}

static inline __m256 magnitudes(__m256 values)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), values);
}

static inline float largest_of(__m256 values)
{
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* Returns the largest magnitude. If the first operand of max or min is NaN, the result is the second. */
static inline float largest_magnitude(const struct values32 *values)
{
    __m256 largest = _mm256_setzero_ps();
    for (int i = 0; i < 4; i++)
        largest = _mm256_max_ps(magnitudes(values->part[i]), largest);
    return largest_of(largest);
}

static inline void largest_of_each(const float *values, size_t n_blocks, float *largest)
{
    for (size_t i = 0; i < n_blocks; i++) {
        struct values32 loaded = load_values(values + 32 * i);
        largest[i] = largest_magnitude(&loaded);
    }
}

/* Returns a mask: bit i is set if value i has that magnitude. */
static inline uint32_t with_magnitude(const struct values32 *values, float magnitude)
{
    uint32_t found = 0;
    for (int i = 0; i < 4; i++) {
        __m256 equal = _mm256_cmp_ps(magnitudes(values->part[i]), _mm256_set1_ps(magnitude), _CMP_EQ_OQ);
        found |= (uint32_t)_mm256_movemask_ps(equal) << (8 * i);
    }
    return found;
}

/* Like largest_by_magnitude(): +0 if the largest is a zero of any sign or there is no number. */
static inline float signed_largest(const float *values)
{
    struct values32 loaded = load_values(values);
    uint32_t found = with_magnitude(&loaded, largest_magnitude(&loaded));
    return found != 0 ? values[__builtin_ctz(found)] + 0.0f : 0;
}

/* Returns the smallest value, and the largest negated, so that one reduction serves both. */
static inline __m256 range_of(const struct values32 *values)
{
    __m256 smallest = _mm256_set1_ps(__builtin_inff()), largest = _mm256_set1_ps(-__builtin_inff());
    for (int i = 0; i < 4; i++) {
        smallest = _mm256_min_ps(values->part[i], smallest);
        largest = _mm256_max_ps(values->part[i], largest);
    }
    __m256 negated = _mm256_xor_ps(largest, _mm256_set1_ps(-0.0f));
    __m256 both =
        _mm256_min_ps(_mm256_permute2f128_ps(smallest, negated, 0x20), _mm256_permute2f128_ps(smallest, negated, 0x31));
    both = _mm256_min_ps(both, _mm256_permute_ps(both, _MM_SHUFFLE(1, 0, 3, 2)));
    return _mm256_min_ps(both, _mm256_permute_ps(both, _MM_SHUFFLE(2, 3, 0, 1)));
}

/* Computes block32_range() for each block of a batch, as the minimum and its distance to the maximum. The first of
 * several zeros counts as the smallest. */
static inline void ranges_of(const float *values, size_t n_blocks, float minimum[BATCH], float span[BATCH])
{
    float negated_maximum[BATCH] = {0};
    memset(minimum, 0, BATCH * sizeof *minimum);
    for (size_t i = 0; i < n_blocks; i++) {
        struct values32 loaded = load_values(values + 32 * i);
        __m256 both = range_of(&loaded);
        minimum[i] = _mm256_cvtss_f32(both);
        negated_maximum[i] = _mm_cvtss_f32(_mm256_extractf128_ps(both, 1));
    }
    __m256 lowest = _mm256_loadu_ps(minimum), negated = _mm256_loadu_ps(negated_maximum);
    /* a - -b is a + b; adding zero makes a zero difference positive, like that of one zero and itself */
    __m256 above = _mm256_xor_ps(_mm256_add_ps(lowest, negated), _mm256_set1_ps(-0.0f));
    _mm256_storeu_ps(span, _mm256_add_ps(above, _mm256_setzero_ps()));
    unsigned zeros = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(lowest, _mm256_setzero_ps(), _CMP_EQ_OQ));
    for (size_t i = 0; zeros != 0 && i < n_blocks; i++) {
        struct values32 loaded = load_values(values + 32 * i);
        if (minimum[i] == 0)
            minimum[i] = values[32 * i + (size_t)__builtin_ctz(with_magnitude(&loaded, 0))];
    }
}

/* Converts eight numbers like f16_store(). */
static inline void halves_of(const float *numbers, uint16_t *halves)
{
    __m256 loaded = _mm256_loadu_ps(numbers), nan = _mm256_cmp_ps(loaded, loaded, _CMP_UNORD_Q);
    __m128i half = _mm256_cvtps_ph(loaded, _MM_FROUND_TO_NEAREST_INT);
    __m128i is_nan =
        _mm_packs_epi32(_mm_castps_si128(_mm256_castps256_ps128(nan)), _mm_castps_si128(_mm256_extractf128_ps(nan, 1)));
    _mm_storeu_si128((__m128i *)(void *)halves, _mm_blendv_epi8(half, _mm_set1_epi16(0x7e00), is_nan));
}

/* Computes scales that divide the spans of a batch into n_levels levels. */
static inline void scales_of(const float spans[BATCH], float n_levels, struct scales *ret_scales)
{
    __m256 scale = _mm256_div_ps(_mm256_loadu_ps(spans), _mm256_set1_ps(n_levels));
    __m256 some = _mm256_cmp_ps(scale, _mm256_setzero_ps(), _CMP_NEQ_UQ);
    _mm256_storeu_ps(ret_scales->scale, scale);
    _mm256_storeu_ps(ret_scales->inverse, _mm256_and_ps(some, _mm256_div_ps(_mm256_set1_ps(1), scale)));
    halves_of(ret_scales->scale, ret_scales->half);
}

static inline float load_scale(const uint8_t *bytes)
{
    uint16_t half;
    memcpy(&half, bytes, sizeof half);
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

/* Packs four times eight integers to bytes in order, each limited to 0..255. */
static inline __m256i to_bytes(const __m256i integers[4])
{
    __m256i low = _mm256_packs_epi32(integers[0], integers[1]), high = _mm256_packs_epi32(integers[2], integers[3]);
    __m256i bytes = _mm256_packus_epi16(low, high); /* four bytes from each half of the registers in turn */
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Returns the levels value * inverse + offset, truncated, within 0..most. As in block32_truncate(), NaN and numbers
 * that do not fit become INT32_MIN. */
static inline __m256i scaled_levels(const struct values32 *values, float inverse, float offset, char most)
{
    __m256i integers[4];
    for (int i = 0; i < 4; i++) {
        __m256 scaled = _mm256_mul_ps(values->part[i], _mm256_set1_ps(inverse));
        integers[i] = _mm256_cvttps_epi32(_mm256_add_ps(scaled, _mm256_set1_ps(offset)));
    }
    return _mm256_min_epu8(to_bytes(integers), _mm256_set1_epi8(most));
}

static inline struct values32 values_above(const float *values, float minimum)
{
    struct values32 above = load_values(values);
    for (int i = 0; i < 4; i++)
        above.part[i] = _mm256_sub_ps(above.part[i], _mm256_set1_ps(minimum));
    return above;
}

/* Like block32_round(). */
static inline __m256i round_away(__m256 values)
{
    __m256 sign = _mm256_and_ps(values, _mm256_set1_ps(-0.0f));
    return _mm256_cvttps_epi32(_mm256_add_ps(values, _mm256_or_ps(sign, _mm256_set1_ps(0x1.fffffep-2f))));
}

static inline void store_nibbles(uint8_t *qs, __m256i levels)
{
    __m128i low = _mm256_castsi256_si128(_mm256_and_si256(levels, _mm256_set1_epi8(15)));
    __m128i high = _mm256_extracti128_si256(levels, 1);
    high = _mm_and_si128(_mm_slli_epi16(high, 4), _mm_set1_epi8((char)0xf0));
    _mm_storeu_si128((__m128i *)(void *)qs, _mm_or_si128(low, high));
}

static inline __m256i load_nibbles(const uint8_t *qs)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)qs);
    __m256i both = _mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes);
    return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

static inline void store_fifth_bits(uint8_t *qh, __m256i levels)
{
    int bits = _mm256_movemask_epi8(_mm256_slli_epi16(levels, 3));
    memcpy(qh, &bits, sizeof bits);
}

/* Returns bytes that are 16 if their fifth bit is set, else 0. */
static inline __m256i load_fifth_bits(const uint8_t *qh)
{
    int bits;
    memcpy(&bits, qh, sizeof bits);
    __m256i byte_of = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    __m256i bit_of = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    __m256i picked = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), byte_of), bit_of);
    return _mm256_and_si256(_mm256_cmpeq_epi8(picked, bit_of), _mm256_set1_epi8(16));
}

/* Stores signed bytes times `scale`. */
static inline void store_scaled(float *values, __m256i bytes, float scale)
{
    __m128i halves[2] = {_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)};
    for (int i = 0; i < 4; i++) {
        __m256i integers = _mm256_cvtepi8_epi32(i % 2 == 0 ? halves[i / 2] : _mm_srli_si128(halves[i / 2], 8));
        _mm256_storeu_ps(values + 8 * i, _mm256_mul_ps(_mm256_cvtepi32_ps(integers), _mm256_set1_ps(scale)));
    }
}

/* Stores bytes times `scale` plus `minimum`. */
static inline void store_scaled_from(float *values, __m256i bytes, float scale, float minimum)
{
    store_scaled(values, bytes, scale);
    for (int i = 0; i < 4; i++)
        _mm256_storeu_ps(values + 8 * i, _mm256_add_ps(_mm256_loadu_ps(values + 8 * i), _mm256_set1_ps(minimum)));
}

/* Defines NAME_encode_avx2 over many blocks from NAME_encode_batch. */
#define DEFINE_AVX2_ENCODER(name, elements, bytes)                                                                     \
    encode_function name##_encode_avx2;                                                                                \
    void name##_encode_avx2(const float *values, void *blocks, size_t n_blocks)                                        \
    {                                                                                                                  \
        uint8_t *block = blocks;                                                                                       \
        for (; n_blocks >= BATCH; n_blocks -= BATCH, block += BATCH * (bytes), values += BATCH * (elements))           \
            name##_encode_batch(values, block, BATCH);                                                                 \
        name##_encode_batch(values, block, n_blocks);                                                                  \
    }

/* Like DEFINE_AVX2_ENCODER; also defines NAME_decode_avx2 from NAME_decode_block. */
#define DEFINE_AVX2_KERNELS(name, elements, bytes)                                                                     \
    DEFINE_AVX2_ENCODER(name, elements, bytes)                                                                         \
    decode_function name##_decode_avx2;                                                                                \
    void name##_decode_avx2(const void *blocks, float *values, size_t n_blocks)                                        \
    {                                                                                                                  \
        for (size_t i = 0; i < n_blocks; i++)                                                                          \
            name##_decode_block((const uint8_t *)blocks + i * (bytes), values + i * (elements));                       \
    }

/* Shared by the AVX2 and AVX-512 kernels of Q4_0, Q4_1, Q5_0 and Q5_1. */

/* Stores the levels of a block, a byte each, as q45_pack_levels() does. */
static inline void q45_store_levels(const struct q45_format *format, __m256i levels, uint8_t *block)
{
    if (format->qh != 0)
        store_fifth_bits(block + format->qh, levels);
    store_nibbles(block + format->qs, levels);
}
