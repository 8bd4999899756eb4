/* A K format as data: its scales and levels, and their packing. All five formats share the search, in a portable form
 * (k_format.c) and with sub-blocks side by side in vectors (k_simd.h). */
#pragma once

#include "quant/blocks/codes.h"
#include "quant/blocks/encoders.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/k_search.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { K_MOST_SUB_BLOCKS = 16, K_MOST_SHARE = 32 };

enum k_kind {
    K_RANGE_MAGNITUDE, /* scale and minimum for 16 values, weighted by |x|, absolute errors: Q2_K */
    K_RANGE_AVERAGE,   /* scale and minimum for 32 values, weighted by |x| plus their root mean square: Q4_K, Q5_K */
    K_REFINED,         /* a scale for 16 values: Q3_K */
    K_SYMMETRIC,       /* a scale for 16 values: Q6_K */
};

struct k_format {
    enum k_kind kind;
    int sub_elements; /* 16 or 32 */
    int low, high;    /* limits of the levels, which are packed minus `low` */
    size_t block_bytes;
    struct k_range_search range; /* for the range kinds */

    /* Factor of the block's mean square in the weights of its values; 0: the weight is the importance. */
    float mean_factor;

    /* Quantizes the scales (and minimums) of a block's sub-blocks and stores them. Returns false if the whole block is
     * zero bytes. */
    bool (*store_scales)(const float *scales, const float *minimums, uint8_t *block);

    /* Like store_scales, with the weights of the sub-blocks. NULL: the weights have no effect. */
    void (*store_weighted_scales)(const float *scales, const float *minimums, const float *weights, uint8_t *block);

    /* Instead of store_weighted_scales: stores the shares of `scale`, plus K_MOST_SHARE, that k_search_symmetric()
     * finds for the scales. Returns the scale as stored. With this, store_scales stores shares, too: those of the scale
     * by which the one of the largest magnitude is -K_MOST_SHARE. */
    float (*store_shares)(float scale, const uint8_t *shares, uint8_t *block);

    /* Decodes the stored scales and minimums of every sub-block; a kind without minimums sets them to 0. */
    void (*load_scales)(const uint8_t *block, float *ret_scales, float *ret_minimums);

    /* Packs the 256 levels. */
    void (*pack)(const uint8_t *levels, uint8_t *block);
};

/* Encodes blocks; `importance` may be NULL. */
typedef void k_encode_function(const struct k_format *format, const float *values, const float *importance,
                               uint8_t *blocks, size_t n_blocks);
k_encode_function k_encode, k_encode_neon, k_encode_avx2, k_encode_avx512;

/* Q2_K and Q3_K decode fast enough as plain C. */
decode_function q4_k_decode_neon, q5_k_decode_neon, q6_k_decode_neon;
decode_function q4_k_decode_avx2, q5_k_decode_avx2, q6_k_decode_avx2;

/* Defines NAME_decode_LEVEL over many blocks from decode_NAME. */
#define DEFINE_K_DECODER(name, level, block_bytes)                                                                     \
    void name##_decode_##level(const void *blocks, float *values, size_t n_blocks)                                     \
    {                                                                                                                  \
        for (size_t i = 0; i < n_blocks; i++)                                                                          \
            decode_##name((const uint8_t *)blocks + i * (block_bytes), values + i * K_ELEMENTS);                       \
    }

/* Defines NAME_dtype over NAME_format and NAME_decode_block, for blocks of `bytes`, and its codes by k_codes(). */
#define DEFINE_K_DTYPE(name, upper, id, bytes, neon_decode, avx2_decode, ...)                                          \
    DEFINE_BLOCK_DECODER(name, K_ELEMENTS, bytes)                                                                      \
    DEFINE_ENCODERS_BY_FUNCTION(name, k_encode, &name##_format)                                                        \
    DEFINE_K_CODES(name)                                                                                               \
    const struct dtype name##_dtype = {                                                                                \
        BLOCK_DTYPE(name, upper, id, K_ELEMENTS, bytes),                                                               \
        .kernels = ENCODER_KERNELS(name, neon_decode, avx2_decode),                                                    \
        .scale_form = &name##_scale_form,                                                                              \
        .codes = CODES_BY_LEVELS(name),                                                                                \
        __VA_ARGS__,                                                                                                   \
    };

/* Shared by Q4_K and Q5_K: eight sub-blocks of 32 with a 6-bit scale and a 6-bit minimum each, packed in 12 bytes
 * after F16 d and dmin. */

enum { Q45_SUB_BLOCKS = 8, Q45_D = 0, Q45_D_MIN = 2, Q45_SCALES = 4 };

bool q45_store_scales(const float *scales, const float *minimums, uint8_t *block);
void q45_store_weighted_scales(const float *scales, const float *minimums, const float *weights, uint8_t *block);
void q45_load_scales(const uint8_t *block, float *ret_scales, float *ret_minimums);

/* The codes of a K format from its scales (codes.h). */

/* Computes the levels of a sub-block. */
typedef void k_levels(const struct k_format *format, const float *values, float scale, float minimum, uint8_t *levels);

static inline void k_levels_portable(const struct k_format *format, const float *restrict values, float scale,
                                     float minimum, uint8_t *restrict levels)
{
    const float low = (float)format->low, high = (float)format->high;
    const int mask = scale != 0 ? 0xff : 0; /* codes that have no effect are 0 */
    for (int i = 0; i < format->sub_elements; i++)
        levels[i] = (uint8_t)((int)(k_level((values[i] + minimum) / scale, low, high) - low) & mask);
}

#if defined(__x86_64__)
/* Returns eight levels. Compilers compare and blend for k_level(), which takes twice as long. */
FOR_AVX2 static inline __m256i k_eight_levels(const float *values, __m256 scale, __m256 minimum, __m256 low,
                                              __m256 high)
{
    const __m256 round = _mm256_set1_ps(K_ROUND);
    const __m256 level = _mm256_div_ps(_mm256_add_ps(_mm256_loadu_ps(values), minimum), scale);
    const __m256 within = _mm256_min_ps(_mm256_max_ps(level, low), high);
    return _mm256_cvttps_epi32(_mm256_sub_ps(_mm256_sub_ps(_mm256_add_ps(within, round), round), low));
}

FOR_AVX2 static inline void k_levels_avx2(const struct k_format *format, const float *values, float scale,
                                          float minimum, uint8_t *levels)
{
    enum { STEP = 16 };
    const __m256 scales = _mm256_set1_ps(scale), minimums = _mm256_set1_ps(minimum);
    const __m256 low = _mm256_set1_ps((float)format->low), high = _mm256_set1_ps((float)format->high);
    const __m128i mask = _mm_set1_epi8(scale != 0 ? -1 : 0);
    for (int i = 0; i < format->sub_elements; i += STEP) {
        const __m256i first = k_eight_levels(values + i, scales, minimums, low, high);
        const __m256i second = k_eight_levels(values + i + STEP / 2, scales, minimums, low, high);
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(first, second), 0xD8);
        const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        _mm_storeu_si128((__m128i *)(void *)(levels + i), _mm_and_si128(bytes, mask));
    }
}
#define k_levels_avx512 k_levels_avx2
#endif

static inline void k_codes(const struct k_format *format, k_levels *levels_of, const float *values, uint8_t *block,
                           size_t n_blocks)
{
    const int n = format->sub_elements;
    for (size_t i = 0; i < n_blocks; i++, values += K_ELEMENTS, block += format->block_bytes) {
        uint8_t levels[K_ELEMENTS];
        float scales[K_MOST_SUB_BLOCKS], minimums[K_MOST_SUB_BLOCKS];
        format->load_scales(block, scales, minimums);
        for (int j = 0; j < K_ELEMENTS / n; j++)
            levels_of(format, values + j * n, scales[j], minimums[j], levels + j * n);
        format->pack(levels, block);
    }
}

/* Defines NAME_scale_form from NAME_format, the place of the F16 unit of its scales and its other fields. A code is
 * computed from the stored scales by three operations in F32. */
#define DEFINE_K_SCALES(name, unit_at, ...)                                                                            \
    static float name##_form_scales(const uint8_t *block, float scales[SCALE_FORM_MOST])                               \
    {                                                                                                                  \
        float minimums[K_MOST_SUB_BLOCKS];                                                                             \
        name##_format.load_scales(block, scales, minimums);                                                            \
        return f16_load(block + (unit_at));                                                                            \
    }                                                                                                                  \
    static const struct scale_form name##_scale_form = {                                                               \
        .has_integers = true,                                                                                          \
        .rounding = 0x1p-15,                                                                                           \
        .load = name##_form_scales,                                                                                    \
        __VA_ARGS__,                                                                                                   \
    };

/* Defines NAME_codes_LEVEL from NAME_format. */
#define DEFINE_K_CODES_AT(name, level, ...)                                                                            \
    __VA_ARGS__ static void name##_codes_##level(const float *values, void *blocks, size_t n_blocks)                   \
    {                                                                                                                  \
        k_codes(&name##_format, k_levels_##level, values, blocks, n_blocks);                                           \
    }
#define DEFINE_K_CODES(name) DEFINE_LEVELS(DEFINE_K_CODES_AT, name)
