/* Shared by the AVX2 and AVX-512 kernels of Q4_0, Q4_1, Q5_0 and Q5_1. */
#pragma once

#include "quant/blocks/q4_q5.h"
#include "quant/kernels/avx2.h"

/* Stores the levels of a block, a byte each, as q45_pack_levels() does. */
static inline void q45_store_levels(const struct q45_format *format, __m256i levels, uint8_t *block)
{
    if (format->qh != 0)
        store_fifth_bits(block + format->qh, levels);
    store_nibbles(block + format->qs, levels);
}
