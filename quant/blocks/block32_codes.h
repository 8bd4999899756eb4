/* The codes of a type with blocks of 32 values from its scale (codes.h). */
#pragma once

#include "quant/blocks/block32.h"
#include "quant/blocks/codes.h"

#include <string.h>

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
