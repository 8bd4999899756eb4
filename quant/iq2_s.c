/* IQ2_S: 256 values in 82 bytes. F16 d, for every eight values the low byte of the index of a point, then for each a byte of
 * signs, then two bits for each that are high in the index, and scales of four bits for every 16;
 * value = d * (0.5 + scale) / 4 * magnitude. */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/iq.h"

enum { SUB_BLOCKS = 16, QS = 2, SIGNS = 34, QH = 66, SCALES = 74, BLOCK_BYTES = 82 };

static void decode_block(const uint8_t *block, float *values)
{
    const struct grid *grid = grid_of(GRID_IQ2_S);
    float d = f16_load(block);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        float scale = d * (0.5f + (float)(block[SCALES + j / 2] >> 4 * (j % 2) & 15)) * 0.25f;
        for (int i = 2 * j; i < 2 * j + 2; i++, values += IQ_GROUP) {
            unsigned index = block[QS + i] | (block[QH + i / 4] >> 2 * (i % 4) & 3u) << 8;
            iq_decode_point(grid_point(grid, index), 8, iq2_magnitudes, block[SIGNS + i], scale, values);
        }
    }
}

static void iq2_s_decode(const void *blocks, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        decode_block((const uint8_t *)blocks + i * BLOCK_BYTES, values + i * IQ_ELEMENTS);
}

const struct dtype iq2_s_dtype = {
    .name = "IQ2_S",
    .view_name = "iq2_s",
    .kind = DTYPE_BLOCK,
    .block_elements = IQ_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 22,
    .n_scales = 1,
    .kernels[CPU_PORTABLE] = {iq2_s_decode, NULL},
};
