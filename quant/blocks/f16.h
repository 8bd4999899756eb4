/* F16 and F32, one number at a time. Rounds to nearest even; overflow gives infinity, subnormals are kept. A NaN keeps
 * its sign and the upper bits of its payload in both directions, and stays signaling, as with numpy's astype. */
#pragma once

#include <stdint.h>

float f16_to_f32(uint16_t half);
uint16_t f16_from_f32(float value);

static inline float f16_load(const void *bytes)
{
    const uint8_t *b = bytes;
    return f16_to_f32((uint16_t)(b[0] | b[1] << 8));
}

/* Stores the scale of a block. NaN becomes 0x7E00, since languages leave the sign and payload of a computed NaN
 * undefined. */
static inline void f16_store(void *bytes, float value)
{
    uint16_t half = value == value ? f16_from_f32(value) : 0x7e00;
    uint8_t *b = bytes;
    b[0] = (uint8_t)half;
    b[1] = (uint8_t)(half >> 8);
}
