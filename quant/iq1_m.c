/* IQ1_M: 256 values in 56 bytes. For every eight values the low byte of the index of a point, then four bits for each: three that
 * are high in the index, and one for the shift; then four u16, each of four scales of three bits for 16 values, and in the
 * highest four a part of F16 d; value = d * (2 * scale + 1) * (level - 1 + shift). */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/iq1.h"

#include "base/checked.h"

enum { SUB_BLOCKS = 16, QH = 32, SCALES = 48, BLOCK_BYTES = 56 };

static uint16_t load_d(const uint8_t *block)
{
    unsigned bits = 0;
    for (int k = 0; k < 4; k++)
        bits |= (unsigned)(block[SCALES + 2 * k + 1] >> 4) << 4 * k;
    return (uint16_t)bits;
}

static bool scale_finite(const void *block)
{
    return (load_d(block) & 0x7c00) != 0x7c00;
}

static void decode_block(const uint8_t *block, float *values)
{
    const struct grid *grid = grid_of(GRID_IQ1);
    float d = f16_to_f32(load_d(block));
    for (int j = 0; j < SUB_BLOCKS; j++) {
        unsigned share = (unsigned)read_le(block + SCALES + 2 * (j / 4), 2) >> 3 * (j % 4) & 7;
        float scale = d * (float)(2 * share + 1);
        for (int k = 0; k < 2; k++, values += IQ_GROUP) {
            unsigned high = block[QH + j] >> 4 * k & 15;
            unsigned index = block[2 * j + k] | (high & 7) << 8;
            iq1_decode_point(grid_point(grid, index), scale, high & 8 ? -IQ1_SHIFT : IQ1_SHIFT, values);
        }
    }
}

static void iq1_m_decode(const void *blocks, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        decode_block((const uint8_t *)blocks + i * BLOCK_BYTES, values + i * IQ_ELEMENTS);
}

const struct dtype iq1_m_dtype = {
    .name = "IQ1_M",
    .view_name = "iq1_m",
    .kind = DTYPE_BLOCK,
    .block_elements = IQ_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 29,
    .scales_finite = scale_finite,
    .kernels[CPU_PORTABLE] = {iq1_m_decode, NULL},
};
