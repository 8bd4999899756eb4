/* IQ3_XXS: 256 values in 98 bytes. F16 d, the index of a point for every four values, and 32 bits for every 32 values:
 * four times seven sign bits, and a scale in the highest four; value = d * (0.5 + scale) / 2 * magnitude. */
#include "quant/blocks/f16.h"
#include "quant/blocks/iq_format.h"

#include "base/checked.h"

enum { SUB_BLOCKS = 8, QS = 2, SIGNS_SCALES = 66, BLOCK_BYTES = 98 };

static void unpack(const uint8_t *block, struct iq_unpacked *unpacked)
{
    float d = f16_load(block);
    for (int i = 0; i < 8 * SUB_BLOCKS; i++)
        unpacked->points[i] = block[QS + i];
    for (int i = 0; i < 4 * SUB_BLOCKS; i++) {
        uint32_t bits = (uint32_t)read_le(block + SIGNS_SCALES + i / 4 * 4, 4);
        unpacked->scales[i] = d * (0.5f + (float)(bits >> 28)) * 0.5f;
        unpacked->signs[i] = (uint8_t)iq_even_signs(bits >> 7 * (i % 4) & 127);
    }
}

static void pack(const struct iq_found *found, uint8_t *block)
{
    for (int i = 0; i < 8 * SUB_BLOCKS; i++)
        block[QS + i] = (uint8_t)found->points[i];
    for (int j = 0; j < SUB_BLOCKS; j++)
        iq_pack_signs(found->signs + 4 * j, found->shares[j], block + SIGNS_SCALES + 4 * j);
}

static const struct iq_format iq3_xxs_format = {
    .grid = GRID_IQ3_XXS,
    .block_bytes = BLOCK_BYTES,
    .sub_elements = 32,
    .even_signs = true,
    .negligible = 1e-8f,
    .n_steps = 15,
    .step = 0.2f,
    .mean_factor = 2,
    .fudge = 1.0125f,
    .magnitudes = {4, 12, 20, 28, 36, 44, 52, 62},
    .unpack = unpack,
    .pack = pack,
};

DEFINE_IQ_DTYPE(iq3_xxs, "IQ3_XXS", 18, ENCODER_KERNELS)
