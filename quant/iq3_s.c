/* IQ3_S: 256 values in 110 bytes. F16 d, for every four values the low byte of the index of a point, then a bit for each that is
 * the ninth, then a byte of signs for every eight values, and scales of four bits for every 32;
 * value = d * (1 + 2 * scale) * magnitude. */
#include "quant/f16.h"
#include "quant/iq_format.h"

#include <string.h>

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

/* A sub-block of zeros leaves no room for its points and signs: those of the next ones move forward, to where no decoder looks
 * for them. The reference does so, and to be identical is the purpose. */
static void pack(const struct iq_found *found, uint8_t *block)
{
    uint8_t *qs = block + QS, *signs = block + SIGNS;
    for (int j = 0; j < SUB_BLOCKS; j++) {
        block[SCALES + j / 2] |= (uint8_t)(found->shares[j] << 4 * (j % 2));
        if (!found->searched[j])
            continue;
        for (int k = 0; k < 8; k++) {
            *qs++ = (uint8_t)found->points[8 * j + k];
            block[QH + j] |= (uint8_t)(found->points[8 * j + k] >> 8 << k);
        }
        memcpy(signs, found->signs + 4 * j, 4);
        signs += 4;
    }
}

static const struct iq_format iq3_s_format = {
    .grid = GRID_IQ3_S,
    .block_bytes = BLOCK_BYTES,
    .sub_elements = 32,
    .redoes_all = true,
    .begins_off = true,
    .keeps_points = true,
    .n_steps = 9,
    .step = 0.2f,
    .mean_factor = 2,
    .fudge = 1.033f,
    .pack = pack,
};

DEFINE_IQ_DECODER(iq3_s, BLOCK_BYTES)
DEFINE_IQ_ENCODERS(iq3_s)

const struct dtype iq3_s_dtype = {
    .name = "IQ3_S",
    .view_name = "iq3_s",
    .kind = DTYPE_BLOCK,
    .block_elements = IQ_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 21,
    .n_scales = 1,
    .encode_cost = 60000,
    .kernels = IQ_KERNELS(iq3_s),
};
