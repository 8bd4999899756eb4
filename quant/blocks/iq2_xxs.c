/* IQ2_XXS: 256 values in 66 bytes. F16 d, then for every 32 values four indices of points and 32 bits: four times seven
 * sign bits, and a scale in the highest four; value = d * (0.5 + scale) / 4 * magnitude. */
#include "quant/blocks/f16.h"
#include "quant/blocks/iq_format.h"

#include "base/checked.h"

enum { SUB_BLOCKS = 8, SUB_BLOCK_BYTES = 8, BLOCK_BYTES = 66 };

static void unpack(const uint8_t *block, struct iq_unpacked *unpacked)
{
    float d = f16_load(block);
    const uint8_t *sub_block = block + 2;
    for (int j = 0; j < SUB_BLOCKS; j++, sub_block += SUB_BLOCK_BYTES) {
        uint32_t bits = (uint32_t)read_le(sub_block + 4, 4);
        for (int k = 0; k < 4; k++) {
            unpacked->scales[4 * j + k] = d * (0.5f + (float)(bits >> 28)) * 0.25f;
            unpacked->points[4 * j + k] = sub_block[k];
            unpacked->signs[4 * j + k] = (uint8_t)iq_even_signs(bits >> 7 * k & 127);
        }
    }
}

static void pack(const struct iq_found *found, uint8_t *block)
{
    uint8_t *sub_block = block + 2;
    for (int j = 0; j < SUB_BLOCKS; j++, sub_block += SUB_BLOCK_BYTES) {
        for (int k = 0; k < 4; k++)
            sub_block[k] = (uint8_t)found->points[4 * j + k];
        iq_pack_signs(found->signs + 4 * j, found->shares[j], sub_block + 4);
    }
}

static const struct iq_format iq2_xxs_format = {
    .grid = GRID_IQ2_XXS,
    .block_bytes = BLOCK_BYTES,
    .sub_elements = 32,
    .even_signs = true,
    .negligible = 1e-15f,
    .positive = true,
    .redoes_all = true,
    .n_steps = 6,
    .step = 0.1f,
    .mean_factor = 1,
    .fudge = 1,
    .magnitudes = {8, 25, 43},
    .unpack = unpack,
    .pack = pack,
};

DEFINE_IQ_DTYPE(iq2_xxs, "IQ2_XXS", 16, WEIGHTED_ENCODER_KERNELS)
