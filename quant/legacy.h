/* What the formats of 32 values share: packing of levels, and the search for what spans a block.
 *
 * Byte j of qs holds value j in its low nibble and value j + 16 in its high one; the fifth bits of Q5 stand in four bytes,
 * bit i for value i. Source: ggml-quants.c of llama.cpp (quantize_row_*_ref). */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LEGACY_ELEMENTS = 32 };

/* The value of the largest magnitude, the first of equals, with its sign. */
static inline float legacy_signed_largest(const float *values)
{
    float largest = 0, magnitude = 0;
    for (int i = 0; i < LEGACY_ELEMENTS; i++)
        if (fabsf(values[i]) > magnitude) {
            magnitude = fabsf(values[i]);
            largest = values[i];
        }
    return largest;
}

static inline void legacy_range(const float *values, float *ret_minimum, float *ret_maximum)
{
    float minimum = INFINITY, maximum = -INFINITY;
    for (int i = 0; i < LEGACY_ELEMENTS; i++) {
        minimum = values[i] < minimum ? values[i] : minimum;
        maximum = values[i] > maximum ? values[i] : maximum;
    }
    *ret_minimum = minimum;
    *ret_maximum = maximum;
}

/* `value` without its fraction, within [0, most]; NaN is 0. For finite blocks the reference never leaves the range below. */
static inline uint8_t legacy_level(float value, uint8_t most)
{
    return !(value > 0) ? 0 : value < (float)most ? (uint8_t)value : most;
}

static inline void legacy_pack_nibbles(const uint8_t levels[LEGACY_ELEMENTS], uint8_t qs[16])
{
    for (int j = 0; j < 16; j++)
        qs[j] = (uint8_t)((levels[j] & 15) | (levels[j + 16] & 15) << 4);
}

static inline void legacy_pack_fifth_bits(const uint8_t levels[LEGACY_ELEMENTS], uint8_t qh[4])
{
    memset(qh, 0, 4);
    for (int i = 0; i < LEGACY_ELEMENTS; i++)
        qh[i / 8] |= (uint8_t)((levels[i] >> 4) << (i % 8));
}

static inline int legacy_nibble(const uint8_t *qs, int i)
{
    return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
}

static inline int legacy_five_bits(const uint8_t *qh, const uint8_t *qs, int i)
{
    return legacy_nibble(qs, i) | (qh[i / 8] >> (i % 8) & 1) << 4;
}

/* Defines NAME_decode and NAME_encode over many blocks of `elements` values in `bytes` bytes from decode_block and encode_block.
 */
#define DEFINE_BLOCK_KERNELS(name, elements, bytes)                                                                              \
    static void name##_decode(const void *blocks, float *values, size_t n_blocks)                                                \
    {                                                                                                                            \
        for (size_t i = 0; i < n_blocks; i++)                                                                                    \
            decode_block((const uint8_t *)blocks + i * (bytes), values + i * (elements));                                        \
    }                                                                                                                            \
    static void name##_encode(const float *values, void *blocks, size_t n_blocks)                                                \
    {                                                                                                                            \
        for (size_t i = 0; i < n_blocks; i++)                                                                                    \
            encode_block(values + i * (elements), (uint8_t *)blocks + i * (bytes));                                              \
    }
