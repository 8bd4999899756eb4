#include "quant/blocks/ordered_difference.h"

#include "base/little_endian.h"

#include <string.h>

#define DEFINE_DIFFERENCE(bits)                                                                                        \
    static inline uint##bits##_t load##bits(const unsigned char *number)                                               \
    {                                                                                                                  \
        uint##bits##_t loaded;                                                                                         \
        memcpy(&loaded, number, sizeof loaded);                                                                        \
        little_endian(&loaded, 1, sizeof loaded);                                                                      \
        return loaded;                                                                                                 \
    }                                                                                                                  \
                                                                                                                       \
    static inline void store##bits(uint##bits##_t number, unsigned char *stored)                                       \
    {                                                                                                                  \
        little_endian(&number, 1, sizeof number);                                                                      \
        memcpy(stored, &number, sizeof number);                                                                        \
    }                                                                                                                  \
                                                                                                                       \
    /* All bits if the highest one is set. */                                                                          \
    static inline uint##bits##_t sign##bits(uint##bits##_t number)                                                     \
    {                                                                                                                  \
        return (uint##bits##_t)((int##bits##_t)number >> ((bits)-1));                                                  \
    }                                                                                                                  \
                                                                                                                       \
    /* Its own inverse. */                                                                                             \
    static inline uint##bits##_t order##bits(uint##bits##_t number)                                                    \
    {                                                                                                                  \
        return (uint##bits##_t)(number ^ (sign##bits(number) & INT##bits##_MAX));                                      \
    }                                                                                                                  \
                                                                                                                       \
    static inline void code##bits(unsigned char *restrict numbers, const unsigned char *restrict base, size_t n)       \
    {                                                                                                                  \
        const size_t width = (bits) / 8;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                                               \
            uint##bits##_t from = order##bits(load##bits(base + i * width)),                                           \
                           to = order##bits(load##bits(numbers + i * width));                                          \
            uint##bits##_t difference = (uint##bits##_t)(to - from);                                                   \
            store##bits((uint##bits##_t)(difference << 1 ^ sign##bits(difference)), numbers + i * width);              \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static inline void restore##bits(unsigned char *restrict numbers, const unsigned char *restrict base, size_t n)    \
    {                                                                                                                  \
        const size_t width = (bits) / 8;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                                               \
            uint##bits##_t from = order##bits(load##bits(base + i * width)), code = load##bits(numbers + i * width);   \
            uint##bits##_t difference = (uint##bits##_t)(code >> 1 ^ (0 - (code & 1)));                                \
            store##bits(order##bits((uint##bits##_t)(from + difference)), numbers + i * width);                        \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static inline void take_nibbles##bits(unsigned char *restrict codes, size_t n, unsigned char *restrict nibbles)    \
    {                                                                                                                  \
        const size_t width = (bits) / 8, half = (n + 1) / 2;                                                           \
        for (size_t i = 0; i < half; i++)                                                                              \
            nibbles[i] = (unsigned char)(load##bits(codes + i * width) & 15);                                          \
        for (size_t i = half; i < n; i++)                                                                              \
            nibbles[i - half] = (unsigned char)(nibbles[i - half] | (load##bits(codes + i * width) & 15) << 4);        \
        for (size_t i = 0; i < n; i++)                                                                                 \
            store##bits((uint##bits##_t)(load##bits(codes + i * width) >> 4), codes + i * width);                      \
    }                                                                                                                  \
                                                                                                                       \
    static inline void give_nibbles##bits(unsigned char *restrict codes, size_t n, unsigned char *restrict nibbles)    \
    {                                                                                                                  \
        const size_t width = (bits) / 8, half = (n + 1) / 2;                                                           \
        for (size_t i = 0; i < half; i++)                                                                              \
            store##bits((uint##bits##_t)(load##bits(codes + i * width) << 4 | (nibbles[i] & 15)), codes + i * width);  \
        for (size_t i = half; i < n; i++)                                                                              \
            store##bits((uint##bits##_t)(load##bits(codes + i * width) << 4 | nibbles[i - half] >> 4),                 \
                        codes + i * width);                                                                            \
    }

DEFINE_DIFFERENCE(16)
DEFINE_DIFFERENCE(32)

#define DEFINE_DIFFERENCE_AT(name, level, ...)                                                                         \
    __VA_ARGS__ static void name##_##level(unsigned char *numbers, const unsigned char *base, size_t n)                \
    {                                                                                                                  \
        name(numbers, base, n);                                                                                        \
    }
#define DEFINE_NIBBLES_AT(name, level, ...)                                                                            \
    __VA_ARGS__ static void name##_##level(unsigned char *codes, size_t n, unsigned char *nibbles)                     \
    {                                                                                                                  \
        name(codes, n, nibbles);                                                                                       \
    }
#define DEFINE_LEVELS_OF(bits)                                                                                         \
    DEFINE_LEVELS(DEFINE_DIFFERENCE_AT, code##bits)                                                                    \
    DEFINE_LEVELS(DEFINE_DIFFERENCE_AT, restore##bits)                                                                 \
    DEFINE_LEVELS(DEFINE_NIBBLES_AT, take_nibbles##bits)                                                               \
    DEFINE_LEVELS(DEFINE_NIBBLES_AT, give_nibbles##bits)

DEFINE_LEVELS_OF(16)
DEFINE_LEVELS_OF(32)

/* Of 2 and 4 bytes; on ARM the portable loops are vectors of NEON. */
static const struct difference_kernels kernels[CPU_LEVELS][2] = {
    [CPU_PORTABLE] = {{code16_portable, restore16_portable, take_nibbles16_portable, give_nibbles16_portable},
                      {code32_portable, restore32_portable, take_nibbles32_portable, give_nibbles32_portable}},
#if defined(__x86_64__)
    [CPU_AVX2] = {{code16_avx2, restore16_avx2, take_nibbles16_avx2, give_nibbles16_avx2},
                  {code32_avx2, restore32_avx2, take_nibbles32_avx2, give_nibbles32_avx2}},
    [CPU_AVX512] = {{code16_avx512, restore16_avx512, take_nibbles16_avx512, give_nibbles16_avx512},
                    {code32_avx512, restore32_avx512, take_nibbles32_avx512, give_nibbles32_avx512}},
#endif
};

const struct difference_kernels *difference_kernels_at(unsigned width, enum cpu_level level)
{
    const size_t row = width / 4;
    int best = (int)level;
    while (kernels[best][row].code == NULL)
        best--;
    return &kernels[best][row];
}

const struct difference_kernels *difference_kernels(unsigned width)
{
    return difference_kernels_at(width, cpu_level());
}
