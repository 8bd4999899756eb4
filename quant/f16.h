/* F16 and F32, one number at a time: what block formats need for their scales.
 * Rounds to nearest even; overflow gives infinity, subnormals are kept, any NaN becomes sign | 0x7E00 as in ggml's
 * conversion without F16C. */
#pragma once

#include <stdint.h>

float f16_to_f32(uint16_t half);
uint16_t f16_from_f32(float value);

static inline float f16_load(const void *bytes)
{
    const uint8_t *b = bytes;
    return f16_to_f32((uint16_t)(b[0] | b[1] << 8));
}

static inline void f16_store(void *bytes, float value)
{
    uint16_t half = f16_from_f32(value);
    uint8_t *b = bytes;
    b[0] = (uint8_t)half;
    b[1] = (uint8_t)(half >> 8);
}
