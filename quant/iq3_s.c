/* IQ3_S: 256 values in 110 bytes. F16 d, for every four values the low byte of the index of a point, then a bit for each that is
 * the ninth, then a byte of signs for every eight values, and scales of four bits for every 32;
 * value = d * (1 + 2 * scale) * magnitude. */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/iq.h"

enum { SUB_BLOCKS = 8, QS = 2, QH = 66, SIGNS = 74, SCALES = 106, BLOCK_BYTES = 110 };

static const float magnitudes[8] = {1, 3, 5, 7, 9, 11, 13, 15};

static void decode_block(const uint8_t *block, float *values)
{
    const struct grid *grid = grid_of(GRID_IQ3_S);
    float d = f16_load(block);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        float scale = d * (float)(1 + 2 * (block[SCALES + j / 2] >> 4 * (j % 2) & 15));
        for (int k = 0; k < 8; k++, values += 4) {
            unsigned index = block[QS + 8 * j + k] | (block[QH + j] >> k & 1u) << 8;
            unsigned signs = block[SIGNS + 4 * j + k / 2] >> 4 * (k % 2);
            iq_decode_point(grid_point(grid, index), 4, magnitudes, signs, scale, values);
        }
    }
}

static void iq3_s_decode(const void *blocks, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        decode_block((const uint8_t *)blocks + i * BLOCK_BYTES, values + i * IQ_ELEMENTS);
}

const struct dtype iq3_s_dtype = {
    .name = "IQ3_S",
    .view_name = "iq3_s",
    .kind = DTYPE_BLOCK,
    .block_elements = IQ_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 21,
    .n_scales = 1,
    .kernels[CPU_PORTABLE] = {iq3_s_decode, NULL},
};
