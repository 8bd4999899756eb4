/* IQ1_S: 256 values in 50 bytes. F16 d, for every eight values the low byte of the index of a point, and a u16 for every 32: four
 * times three bits that are high in the index, a scale of three, and one for the shift;
 * value = d * (2 * scale + 1) * (level - 1 + shift). */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/iq1.h"

#include "base/checked.h"

enum { SUB_BLOCKS = 8, QS = 2, QH = 34, BLOCK_BYTES = 50 };

static void decode_block(const uint8_t *block, float *values)
{
    const struct grid *grid = grid_of(GRID_IQ1);
    float d = f16_load(block);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        unsigned high = (unsigned)read_le(block + QH + 2 * j, 2);
        float scale = d * (float)(2 * (high >> 12 & 7) + 1), shift = high & 0x8000 ? -IQ1_SHIFT : IQ1_SHIFT;
        for (int k = 0; k < 4; k++, values += IQ_GROUP)
            iq1_decode_point(grid_point(grid, block[QS + 4 * j + k] | (high >> 3 * k & 7) << 8), scale, shift, values);
    }
}

static void iq1_s_decode(const void *blocks, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        decode_block((const uint8_t *)blocks + i * BLOCK_BYTES, values + i * IQ_ELEMENTS);
}

const struct dtype iq1_s_dtype = {
    .name = "IQ1_S",
    .view_name = "iq1_s",
    .kind = DTYPE_BLOCK,
    .block_elements = IQ_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 19,
    .n_scales = 1,
    .kernels[CPU_PORTABLE] = {iq1_s_decode, NULL},
};
