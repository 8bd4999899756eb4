/* The scales of NVFP4. */
#pragma once

#include <stdint.h>
#include <string.h>

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
