/* Shared by TQ1_0 and TQ2_0: 256 values as -1, 0 or 1 times the largest magnitude. */
#pragma once

#include "quant/blocks/block32.h"

enum { TERNARY_ELEMENTS = 256 };

/* Fills in digits 0, 1, 2 for -1, 0, 1 (rounded half away from zero); returns the scale. */
static inline float ternary_digits(const float *values, uint8_t digits[TERNARY_ELEMENTS])
{
    float largest = 0;
    for (int i = 0; i < TERNARY_ELEMENTS; i++)
        largest = fabsf(values[i]) > largest ? fabsf(values[i]) : largest;
    float inverse = block32_inverse(largest);
    for (int i = 0; i < TERNARY_ELEMENTS; i++)
        digits[i] = (uint8_t)(((uint32_t)block32_round(values[i] * inverse) + 1) & 3);
    return largest;
}
