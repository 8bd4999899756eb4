/* Shared by the formats with blocks of 32 values: packing levels, and finding a block's range.
 *
 * Byte j of qs holds value j in its low nibble and value j + 16 in its high one; the fifth bits of Q5 are in four
 * bytes, bit i for value i. Source: ggml-quants.c of llama.cpp (quantize_row_*_ref).
 *
 * If the values of a block are so small that the inverse of its scale is infinite, the reference converts infinity and
 * NaN to integers, which is undefined in C. Here such a conversion gives INT32_MIN, as in llama.cpp on x86-64. */
#pragma once

#include "quant/blocks/codes.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK32_ELEMENTS = 32 };

static inline void block32_range(const float *values, float *ret_minimum, float *ret_maximum)
{
    float minimum = INFINITY, maximum = -INFINITY;
    for (int i = 0; i < BLOCK32_ELEMENTS; i++) {
        minimum = values[i] < minimum ? values[i] : minimum;
        maximum = values[i] > maximum ? values[i] : maximum;
    }
    *ret_minimum = minimum;
    *ret_maximum = maximum;
}

/* Rounds toward zero; NaN and numbers that do not fit give INT32_MIN. */
static inline int32_t block32_truncate(float value)
{
    return value >= -0x1p31f && value < 0x1p31f ? (int32_t)value : INT32_MIN;
}

/* Rounds to nearest, halves away from zero, like roundf(). The added number is the one before one half: from exactly
 * one half on, the sum rounds up to the next integer. */
static inline int32_t block32_round(float value)
{
    return block32_truncate(value + copysignf(0x1.fffffep-2f, value));
}

/* Returns `value` without its fraction, within [0, most]. */
static inline uint8_t block32_level(float value, int most)
{
    int level = block32_truncate(value), capped = level < most ? level : most;
    return (uint8_t)(capped < 0 ? 0 : capped);
}

/* Returns the inverse of a scale; 0 for 0. */
static inline float block32_inverse(float scale)
{
    return scale != 0 ? 1 / scale : 0;
}

static inline void block32_pack_nibbles(const uint8_t levels[BLOCK32_ELEMENTS], uint8_t qs[16])
{
    for (int j = 0; j < 16; j++)
        qs[j] = (uint8_t)((levels[j] & 15) | (levels[j + 16] & 15) << 4);
}

static inline void block32_pack_fifth_bits(const uint8_t levels[BLOCK32_ELEMENTS], uint8_t qh[4])
{
    memset(qh, 0, 4);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        qh[i / 8] |= (uint8_t)((levels[i] >> 4) << (i % 8));
}

static inline int block32_nibble(const uint8_t *qs, int i)
{
    return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
}

static inline int block32_fifth_bit(const uint8_t *qh, int i)
{
    return (qh[i / 8] >> (i % 8) & 1) << 4;
}

/* Defines NAME_decode and NAME_encode over many blocks of `elements` values in `bytes` bytes from NAME_decode_block
 * and NAME_encode_block. */
#define DEFINE_BLOCK_KERNELS(name, elements, bytes)                                                                    \
    DEFINE_BLOCK_DECODER(name, elements, bytes)                                                                        \
    static void name##_encode(const float *values, void *blocks, size_t n_blocks)                                      \
    {                                                                                                                  \
        for (size_t i = 0; i < n_blocks; i++)                                                                          \
            name##_encode_block(values + i * (elements), (uint8_t *)blocks + i * (bytes));                             \
    }

/* The codes of a type with blocks of 32 values from its scale (codes.h). */

/* Sets the codes of one block to those nearest for its scale. */
typedef void nearest_function(const float *values, uint8_t *block);

/* Takes the encoder's codes where its scales are those of the block, which begins with `scale_bytes` of them. */
static inline void block32_codes(encode_function *encode, nearest_function *nearest, size_t block_bytes,
                                 size_t scale_bytes, const float *values, uint8_t *blocks, size_t n_blocks)
{
    enum { BATCH = 16, MOST_BYTES = 34 };
    uint8_t encoded[BATCH * MOST_BYTES];
    for (size_t first = 0; first < n_blocks; first += BATCH) {
        size_t n = n_blocks - first < BATCH ? n_blocks - first : BATCH;
        encode(values + first * BLOCK32_ELEMENTS, encoded, n);
        for (size_t i = 0; i < n; i++) {
            uint8_t *block = blocks + (first + i) * block_bytes, *own = encoded + i * block_bytes;
            if (memcmp(block, own, scale_bytes) == 0)
                memcpy(block, own, block_bytes);
            else
                nearest(values + (first + i) * BLOCK32_ELEMENTS, block);
        }
    }
}

/* Defines NAME_codes_LEVEL from the encoders of the levels. */
#define DEFINE_BLOCK32_CODES_AT(name, level, encode, nearest, block_bytes, scale_bytes, ...)                           \
    __VA_ARGS__ static void name##_codes_##level(const float *values, void *blocks, size_t n_blocks)                   \
    {                                                                                                                  \
        block32_codes(encode, nearest, block_bytes, scale_bytes, values, blocks, n_blocks);                            \
    }

#if defined(__x86_64__)
#define DEFINE_BLOCK32_CODES(name, nearest, block_bytes, scale_bytes)                                                  \
    DEFINE_BLOCK32_CODES_AT(name, portable, name##_encode, nearest, block_bytes, scale_bytes)                          \
    DEFINE_BLOCK32_CODES_AT(name, avx2, name##_encode_avx2, nearest, block_bytes, scale_bytes, FOR_AVX2)
#elif defined(__aarch64__)
#define DEFINE_BLOCK32_CODES(name, nearest, block_bytes, scale_bytes)                                                  \
    DEFINE_BLOCK32_CODES_AT(name, portable, name##_encode, nearest, block_bytes, scale_bytes)                          \
    DEFINE_BLOCK32_CODES_AT(name, neon, name##_encode_neon, nearest, block_bytes, scale_bytes)
#else
#define DEFINE_BLOCK32_CODES(name, nearest, block_bytes, scale_bytes)                                                  \
    DEFINE_BLOCK32_CODES_AT(name, portable, name##_encode, nearest, block_bytes, scale_bytes)
#endif

/* The codes of NAME at all levels; the loops are short, so that AVX2 serves AVX-512, too. */
#define BLOCK32_CODES(name)                                                                                            \
    {                                                                                                                  \
        [CPU_PORTABLE] = name##_codes_portable, [CPU_NEON] = ON_ARM(name##_codes_neon),                                \
        [CPU_AVX2] = ON_X86(name##_codes_avx2),                                                                        \
    }
