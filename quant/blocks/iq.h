/* Shared by the IQ formats: blocks of 256 values in groups of eight, with points of a grid as magnitudes, and separate
 * bits as signs. Source: ggml-quants.c of llama.cpp. */
#pragma once

#include "quant/blocks/grid.h"

enum { IQ_ELEMENTS = 256, IQ_GROUP = 8 };

/* Returns the signs of a group from the seven bits that some formats store: the number of negative values is even. */
static inline unsigned iq_even_signs(unsigned stored)
{
    return stored | (unsigned)__builtin_parity(stored) << 7;
}

/* Packs four times seven signs, and a share in the highest four bits. */
static inline void iq_pack_signs(const uint8_t signs[4], unsigned share, uint8_t *bytes)
{
    uint32_t bits = share << 28;
    for (int k = 0; k < 4; k++)
        bits |= (uint32_t)signs[k] << 7 * k;
    for (int k = 0; k < 4; k++)
        bytes[k] = (uint8_t)(bits >> 8 * k);
}
