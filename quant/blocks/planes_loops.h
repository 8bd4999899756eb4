/* The loops of planes.h: a file compiled for a level includes them for the compiler to vectorize, or for what is left
 * after its vectors. */
#include "base/little_endian.h"
#include "quant/blocks/planes.h"

#include <string.h>

/* Defines the loops over numbers `first` to `n`, and over all numbers. Bits are moved to the other end in two steps,
 * because a shift by the width is undefined. */
#define DEFINE_PLANES(bits)                                                                                            \
    static inline void split##bits(const unsigned char *restrict numbers, size_t first, size_t n, unsigned rotation,   \
                                   unsigned char *restrict planes)                                                     \
    {                                                                                                                  \
        enum { WIDTH = (bits) / 8 };                                                                                   \
        for (size_t i = first; i < n; i++) {                                                                           \
            uint##bits##_t number;                                                                                     \
            memcpy(&number, numbers + i * WIDTH, WIDTH);                                                               \
            little_endian(&number, 1, WIDTH);                                                                          \
            number = (uint##bits##_t)(number << rotation | number >> (WIDTH * 8 - 1 - rotation) >> 1);                 \
            for (size_t j = 0; j < WIDTH; j++)                                                                         \
                planes[i + j * n] = (unsigned char)(number >> 8 * j);                                                  \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static inline void join##bits(const unsigned char *restrict planes, size_t first, size_t n, unsigned rotation,     \
                                  unsigned char *restrict numbers)                                                     \
    {                                                                                                                  \
        enum { WIDTH = (bits) / 8 };                                                                                   \
        for (size_t i = first; i < n; i++) {                                                                           \
            uint##bits##_t number = 0;                                                                                 \
            for (size_t j = 0; j < WIDTH; j++)                                                                         \
                number = (uint##bits##_t)(number | (uint##bits##_t)planes[i + j * n] << 8 * j);                        \
            const uint##bits##_t high = (uint##bits##_t)(number << (WIDTH * 8 - 1 - rotation));                        \
            number = (uint##bits##_t)(number >> rotation | high << 1);                                                 \
            little_endian(&number, 1, WIDTH);                                                                          \
            memcpy(numbers + i * WIDTH, &number, WIDTH);                                                               \
        }                                                                                                              \
    }

#define DEFINE_PLANES_OF_ALL(bits)                                                                                     \
    static void split##bits##_all(const void *numbers, size_t n, unsigned rotation, unsigned char *planes)             \
    {                                                                                                                  \
        split##bits(numbers, 0, n, rotation, planes);                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    static void join##bits##_all(const unsigned char *planes, size_t n, unsigned rotation, void *numbers)              \
    {                                                                                                                  \
        join##bits(planes, 0, n, rotation, numbers);                                                                   \
    }

DEFINE_PLANES(16)
DEFINE_PLANES(32)
DEFINE_PLANES(64)
DEFINE_PLANES_OF_ALL(64)
