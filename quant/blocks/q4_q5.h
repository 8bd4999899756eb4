/* Q4_0, Q4_1, Q5_0 and Q5_1: 32 values of four or five bits each, and a scale.
 *
 * A block is F16 d; F16 m (the minimum) in Q4_1 and Q5_1; the fifth bits, qh[4], in Q5_0 and Q5_1; and qs[16]. A value
 * is d * level + m, or d * (level - n_levels / 2) without a minimum. */
#pragma once

#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"

#include <stdbool.h>
#include <stddef.h>

enum { Q45_M = 2, Q4_0_BYTES = 18, Q4_1_BYTES = 20, Q5_0_BYTES = 22, Q5_1_BYTES = 24 };

struct q45_format {
    size_t block_bytes;
    int n_levels; /* 16 or 32 */
    bool has_minimum;
    size_t qh, qs; /* offsets in a block; qh is 0 if levels have four bits */
};

static const struct q45_format q4_0_format = {Q4_0_BYTES, 16, false, 0, 2};
static const struct q45_format q4_1_format = {Q4_1_BYTES, 16, true, 0, 4};
static const struct q45_format q5_0_format = {Q5_0_BYTES, 32, false, 2, 6};
static const struct q45_format q5_1_format = {Q5_1_BYTES, 32, true, 4, 8};

static inline void q45_pack_levels(const struct q45_format *format, const uint8_t *levels, uint8_t *block)
{
    if (format->qh != 0)
        block32_pack_fifth_bits(levels, block + format->qh);
    block32_pack_nibbles(levels, block + format->qs);
}

/* Stores a block. */
static inline void q45_pack(const struct q45_format *format, float d, float minimum, const uint8_t *levels,
                            uint8_t *block)
{
    f16_store(block, d);
    if (format->has_minimum)
        f16_store(block + Q45_M, minimum);
    q45_pack_levels(format, levels, block);
}

/* Declares the fast kernels of a format (block32_avx2.c, q4_q5_simd.h). */
#define Q45_KERNELS(name)                                                                                              \
    decode_function name##_decode_neon, name##_decode_avx2;                                                            \
    encode_function name##_encode_neon, name##_encode_avx2;                                                            \
    encode_weighted_function name##_encode_weighted_neon, name##_encode_weighted_avx2, name##_encode_weighted_avx512;
Q45_KERNELS(q4_0)
Q45_KERNELS(q4_1)
Q45_KERNELS(q5_0)
Q45_KERNELS(q5_1)
