/* What IQ1_S and IQ1_M share: groups of eight values of which each is -1, 0 or 1 times a scale, all of them moved by an eighth of
 * it up or down. */
#pragma once

#include "quant/iq.h"

#define IQ1_SHIFT 0.125f

static inline void iq1_decode_point(const uint8_t *levels, float scale, float shift, float *values)
{
    for (int i = 0; i < IQ_GROUP; i++)
        values[i] = scale * ((float)levels[i] - 1 + shift);
}
