/* IQ3_S: 256 values in 110 bytes. F16 d, for every four values the low byte of a point's index, then the ninth bit of
 * each index, then a byte of signs for every eight values, and a 4-bit scale for every 32; value = d * (1 + 2 * scale)
 * * magnitude. */
#include "quant/blocks/f16.h"
#include "quant/blocks/iq_format.h"

#include <string.h>

enum { SUB_BLOCKS = 8, QS = 2, QH = 66, SIGNS = 74, SCALES = 106, BLOCK_BYTES = 110 };

static void unpack(const uint8_t *block, struct iq_unpacked *unpacked)
{
    float d = f16_load(block);
    for (int i = 0; i < 8 * SUB_BLOCKS; i++)
        unpacked->points[i] = (uint16_t)(block[QS + i] | (block[QH + i / 8] >> i % 8 & 1u) << 8);
    for (int i = 0; i < 4 * SUB_BLOCKS; i++) {
        unpacked->scales[i] = d * (float)(1 + 2 * (block[SCALES + i / 8] >> 4 * (i / 4 % 2) & 15));
        unpacked->signs[i] = block[SIGNS + i];
    }
}

/* Packs a block. As in the reference, a sub-block of zeros leaves no room for its points and signs, so those of later
 * sub-blocks move forward, to places where no decoder looks for them. */
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
    .magnitudes = {1, 3, 5, 7, 9, 11, 13, 15},
    .unpack = unpack,
    .pack = pack,
};

DEFINE_IQ_DTYPE(iq3_s, "IQ3_S", 21, ENCODER_KERNELS)
