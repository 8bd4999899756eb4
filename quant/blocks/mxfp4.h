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
