/* Shared by the kernels of MXFP4 and NVFP4. */
#pragma once

#include <stdint.h>
#include <string.h>

/* Returns the E8M0 scale of a block with this largest magnitude, in F32 like the reference: log2f() may round up to the
 * next integer, and results for magnitudes below 2^-125 wrap around. */
uint8_t mxfp4_exponent(float largest);

/* The same, read from the bits, except where log2f() would round up to the next power, and where it wraps
 * around. */
static inline uint8_t mxfp4_exponent_of(float largest)
{
    uint32_t bits, most = 0x7fff00;
    memcpy(&bits, &largest, sizeof bits);
    uint32_t exponent = bits >> 23;
    return exponent < 2 || exponent == 255 || (bits & 0x7fffff) >= most ? mxfp4_exponent(largest)
                                                                        : (uint8_t)(exponent - 2);
}

/* Twice each code's E2M1 number. */
extern const int8_t mxfp4_doubled[16];

/* Returns 2^(e - 128), exact for every e: the first two are subnormal. */
static inline float mxfp4_half_scale(uint8_t e)
{
    uint32_t bits = e < 2 ? (uint32_t)0x00200000 << e : (uint32_t)(e - 1) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return scale;
}

/* The scales of NVFP4. */

/* Returns half the value of a scale: four bits of exponent with a bias of 7, and three of mantissa. */
static inline float nvfp4_half_scale(uint8_t scale)
{
    unsigned exponent = scale >> 3 & 15, mantissa = scale & 7;
    if (scale == 0 || scale == 0x7f)
        return 0;
    if (exponent == 0)
        return (float)mantissa * 0x1p-10f;
    uint32_t bits = (exponent - 8 + 127) << 23 | mantissa << 20;
    float half;
    memcpy(&half, &bits, sizeof half);
    return half;
}

/* Returns the scale of a number. Rounds halves up. Numbers from 256 on give 448, the largest: the reference finds the
 * exponent too large before it looks at the mantissa. */
static inline uint8_t nvfp4_scale_of(float value)
{
    enum { LARGEST = 0x7e };
    if (!(value > 0))
        return 0;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)(bits >> 23) - 127 + 7, mantissa = (int)(bits >> 20 & 7) + (int)(bits >> 19 & 1);
    if (exponent <= 0) {
        int units = (int)(value * 512 + 0.5f);
        return (uint8_t)(units < 7 ? units : 7);
    }
    if (mantissa > 7) {
        mantissa = 0;
        exponent += exponent < 15;
    }
    return (uint8_t)(exponent >= 15 ? LARGEST : exponent << 3 | mantissa);
}
