/* IQ2_S: 256 values in 82 bytes. F16 d, for every eight values the low byte of a point's index, then a byte of signs
 * for each, then the two high bits of each index, and a 4-bit scale for every 16; value = d * (0.5 + scale) / 4 *
 * magnitude. */
#include "quant/blocks/f16.h"
#include "quant/blocks/iq_format.h"

enum { SUB_BLOCKS = 16, QS = 2, SIGNS = 34, QH = 66, SCALES = 74, BLOCK_BYTES = 82 };

static void unpack(const uint8_t *block, struct iq_unpacked *unpacked)
{
    float d = f16_load(block);
    for (int i = 0; i < 2 * SUB_BLOCKS; i++) {
        unsigned share = block[SCALES + i / 4] >> 4 * (i / 2 % 2) & 15;
        unpacked->scales[i] = d * (0.5f + (float)share) * 0.25f;
        unpacked->points[i] = (uint16_t)(block[QS + i] | (block[QH + i / 4] >> 2 * (i % 4) & 3u) << 8);
        unpacked->signs[i] = block[SIGNS + i];
    }
}

static void pack(const struct iq_found *found, uint8_t *block)
{
    for (int i = 0; i < 2 * SUB_BLOCKS; i++) {
        block[QS + i] = (uint8_t)found->points[i];
        block[QH + i / 4] |= (uint8_t)(found->points[i] >> 8 << 2 * (i % 4));
        block[SIGNS + i] = found->signs[i];
    }
    for (int j = 0; j < SUB_BLOCKS; j++)
        block[SCALES + j / 2] |= (uint8_t)(found->shares[j] << 4 * (j % 2));
}

static const struct iq_format iq2_s_format = {
    .grid = GRID_IQ2_S,
    .block_bytes = BLOCK_BYTES,
    .sub_elements = 16,
    .negligible = 1e-8f,
    .keeps_points = true,
    .n_steps = 9,
    .step = 0.1f,
    .mean_factor = 2,
    .plain_share = 0.25f,
    .fudge = 0.9875f,
    .magnitudes = {8, 25, 43},
    .unpack = unpack,
    .pack = pack,
};

DEFINE_IQ_DTYPE(iq2_s, "IQ2_S", 22, ENCODER_KERNELS)
