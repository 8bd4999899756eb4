/* IQ2_XS: 256 values in 74 bytes. F16 d, a u16 for every eight values (nine bits of the index of a point, seven of signs), and
 * scales of four bits for every 16; value = d * (0.5 + scale) / 4 * magnitude. */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/iq.h"

#include "base/checked.h"

enum { SUB_BLOCKS = 16, QS = 2, SCALES = 66, BLOCK_BYTES = 74 };

static void decode_block(const uint8_t *block, float *values)
{
    const struct grid *grid = grid_of(GRID_IQ2_XS);
    float d = f16_load(block);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        float scale = d * (0.5f + (float)(block[SCALES + j / 2] >> 4 * (j % 2) & 15)) * 0.25f;
        for (int k = 0; k < 2; k++, values += IQ_GROUP) {
            unsigned q = (unsigned)read_le(block + QS + 2 * (2 * j + k), 2);
            iq_decode_point(grid_point(grid, q & 511), 8, iq2_magnitudes, iq_even_signs(q >> 9), scale, values);
        }
    }
}

static void iq2_xs_decode(const void *blocks, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        decode_block((const uint8_t *)blocks + i * BLOCK_BYTES, values + i * IQ_ELEMENTS);
}

const struct dtype iq2_xs_dtype = {
    .name = "IQ2_XS",
    .view_name = "iq2_xs",
    .kind = DTYPE_BLOCK,
    .block_elements = IQ_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 17,
    .n_scales = 1,
    .kernels[CPU_PORTABLE] = {iq2_xs_decode, NULL},
};
