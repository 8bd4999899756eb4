/* The blocks of IQ1_S and IQ1_M for decoders, each of which has its own way to decode a point of eight values. See
 * iq1_s.c and iq1_m.c for the formats. */
#pragma once

#include "quant/blocks/f16.h"
#include "quant/blocks/iq1.h"

#include "base/checked.h"

/* Decodes a point: (level - 1 + shift) * scale. */
typedef void iq1_point_function(const uint8_t levels[IQ_GROUP], float scale, float shift, float *values);

enum { IQ1_S_QS = 2, IQ1_S_QH = 34, IQ1_S_BYTES = 50, IQ1_S_SUB_BLOCKS = 8 };
enum { IQ1_M_QH = 32, IQ1_M_SCALES = 48, IQ1_M_BYTES = 56, IQ1_M_SUB_BLOCKS = 16 };

static inline void iq1_s_decode_by(iq1_point_function *decode_point, const uint8_t *block, float *values,
                                   size_t n_blocks)
{
    const struct grid *grid = grid_of(GRID_IQ1);
    for (size_t i = 0; i < n_blocks; i++, block += IQ1_S_BYTES) {
        float d = f16_load(block);
        for (int j = 0; j < IQ1_S_SUB_BLOCKS; j++) {
            unsigned high = (unsigned)read_le(block + IQ1_S_QH + 2 * j, 2);
            float scale = d * (float)(2 * (high >> 12 & 7) + 1), shift = high & 0x8000 ? -IQ1_SHIFT : IQ1_SHIFT;
            for (int k = 0; k < 4; k++, values += IQ_GROUP) {
                unsigned index = block[IQ1_S_QS + 4 * j + k] | (high >> 3 * k & 7) << 8;
                decode_point(grid_point(grid, index), scale, shift, values);
            }
        }
    }
}

/* Returns the F16 of a block of IQ1_M, a quarter of which is in each of the words that scales are in. */
static inline uint16_t iq1_m_load_d(const uint8_t *block)
{
    unsigned d = 0;
    for (int k = 0; k < 4; k++)
        d |= (unsigned)(block[IQ1_M_SCALES + 2 * k + 1] >> 4) << 4 * k;
    return (uint16_t)d;
}

static inline void iq1_m_decode_by(iq1_point_function *decode_point, const uint8_t *block, float *values,
                                   size_t n_blocks)
{
    const struct grid *grid = grid_of(GRID_IQ1);
    for (size_t i = 0; i < n_blocks; i++, block += IQ1_M_BYTES) {
        float d = f16_to_f32(iq1_m_load_d(block));
        for (int j = 0; j < IQ1_M_SUB_BLOCKS; j++) {
            unsigned share = (unsigned)read_le(block + IQ1_M_SCALES + 2 * (j / 4), 2) >> 3 * (j % 4) & 7;
            float scale = d * (float)(2 * share + 1);
            for (int k = 0; k < 2; k++, values += IQ_GROUP) {
                unsigned high = block[IQ1_M_QH + j] >> 4 * k & 15;
                unsigned index = block[2 * j + k] | (high & 7) << 8;
                decode_point(grid_point(grid, index), scale, high & 8 ? -IQ1_SHIFT : IQ1_SHIFT, values);
            }
        }
    }
}
