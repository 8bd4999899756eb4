/* A K format as data: what its scales and levels are and how they are packed. What searches them is common to all five,
 * in a portable form (k_format.c) and with sub-blocks side by side in vectors (k_simd.h). */
#pragma once

#include "quant/dtype.h"
#include "quant/k_search.h"

#include <stddef.h>

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
    int low, high;    /* of the levels; they are packed minus `low` */
    size_t block_bytes;
    struct k_range_search range; /* for the range kinds */

    /* What the mean square of a block is multiplied with for the weights of its values; 0: the importance is the
     * weight. */
    float mean_factor;

    /* Quantizes the scales (and minimums) of a block's sub-blocks and stores them. False: the whole block is zero
     * bytes. */
    bool (*store_scales)(const float *scales, const float *minimums, uint8_t *block);

    /* The same by the weights of the sub-blocks. NULL: these make no difference. */
    void (*store_weighted_scales)(const float *scales, const float *minimums, const float *weights, uint8_t *block);

    /* Instead of it: what k_search_symmetric() makes of the scales by these weights, as shares of `scale` plus
     * K_MOST_SHARE. */
    void (*store_shares)(float scale, const uint8_t *shares, uint8_t *block);

    /* What was stored for every sub-block, as values; a kind without minimums sets them to 0. */
    void (*load_scales)(const uint8_t *block, float *ret_scales, float *ret_minimums);

    /* Packs the 256 levels. */
    void (*pack)(const uint8_t *levels, uint8_t *block);
};

void k_encode(const struct k_format *format, const float *values, uint8_t *blocks, size_t n_blocks);
void k_encode_weighted(const struct k_format *format, const float *values, const float *importance, uint8_t *blocks,
                       size_t n_blocks);

void k_encode_avx2(const struct k_format *format, const float *values, uint8_t *blocks, size_t n_blocks);
void k_encode_weighted_avx2(const struct k_format *format, const float *values, const float *importance,
                            uint8_t *blocks, size_t n_blocks);
void k_encode_avx512(const struct k_format *format, const float *values, uint8_t *blocks, size_t n_blocks);
void k_encode_weighted_avx512(const struct k_format *format, const float *values, const float *importance,
                              uint8_t *blocks, size_t n_blocks);

/* Q2_K and Q3_K decode fast enough as plain C. */
decode_function q4_k_decode_avx2, q5_k_decode_avx2, q6_k_decode_avx2;

/* Defines NAME_encode and, for x86-64, NAME_encode_avx2 and NAME_encode_avx512 over NAME_format, and
 * K_KERNELS(NAME, its decoder with AVX2 or NULL): the kernels of its dtype. */
#define DEFINE_WEIGHTED_K_ENCODER(name, suffix)                                                                        \
    static void name##_encode_weighted##suffix(const float *values, const float *importance,                           \
                                               const float *mean_squares, void *blocks, size_t n_blocks)               \
    {                                                                                                                  \
        (void)mean_squares;                                                                                            \
        k_encode_weighted##suffix(&name##_format, values, importance, blocks, n_blocks);                               \
    }
#define DEFINE_K_ENCODER(name, suffix)                                                                                 \
    static void name##_encode##suffix(const float *values, void *blocks, size_t n_blocks)                              \
    {                                                                                                                  \
        k_encode##suffix(&name##_format, values, blocks, n_blocks);                                                    \
    }
#if defined(__x86_64__)
#define DEFINE_FAST_K_ENCODERS(name)                                                                                   \
    DEFINE_K_ENCODER(name, _avx2)                                                                                      \
    DEFINE_WEIGHTED_K_ENCODER(name, _avx2)                                                                             \
    DEFINE_WEIGHTED_K_ENCODER(name, _avx512)                                                                           \
    DEFINE_K_ENCODER(name, _avx512)
#else
#define DEFINE_FAST_K_ENCODERS(name)
#endif
#define DEFINE_K_ENCODERS(name)                                                                                        \
    DEFINE_K_ENCODER(name, )                                                                                           \
    DEFINE_WEIGHTED_K_ENCODER(name, )                                                                                  \
    DEFINE_FAST_K_ENCODERS(name)
#define K_KERNELS(name, fast_decode)                                                                                   \
    {                                                                                                                  \
        [CPU_PORTABLE] = {name##_decode, name##_encode, name##_encode_weighted},                                       \
        [CPU_AVX2] = {ON_X86(fast_decode), ON_X86(name##_encode_avx2), ON_X86(name##_encode_weighted_avx2)},           \
        [CPU_AVX512] = {NULL, ON_X86(name##_encode_avx512), ON_X86(name##_encode_weighted_avx512)},                    \
    }
