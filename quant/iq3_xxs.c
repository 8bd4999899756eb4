/* IQ3_XXS: 256 values in 98 bytes. F16 d, the index of a point for every four values, and 32 bits for every 32: four times seven
 * of signs, and a scale in the highest four; value = d * (0.5 + scale) / 2 * magnitude. */
#include "quant/f16.h"
#include "quant/iq_format.h"

#include "base/checked.h"

enum { SUB_BLOCKS = 8, QS = 2, SIGNS_SCALES = 66, BLOCK_BYTES = 98 };

static const float magnitudes[8] = {4, 12, 20, 28, 36, 44, 52, 62};

static void decode_block(const uint8_t *block, float *values)
{
    const struct grid *grid = grid_of(GRID_IQ3_XXS);
    float d = f16_load(block);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        uint32_t bits = (uint32_t)read_le(block + SIGNS_SCALES + 4 * j, 4);
        float scale = d * (0.5f + (float)(bits >> 28)) * 0.5f;
        for (int k = 0; k < 8; k++, values += 4) {
            unsigned signs = iq_even_signs(bits >> 7 * (k / 2) & 127) >> 4 * (k % 2);
            iq_decode_point(grid_point(grid, block[QS + 8 * j + k]), 4, magnitudes, signs, scale, values);
        }
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
    .pack = pack,
};

DEFINE_IQ_DECODER(iq3_xxs, BLOCK_BYTES)
DEFINE_IQ_ENCODERS(iq3_xxs)

const struct dtype iq3_xxs_dtype = {
    .name = "IQ3_XXS",
    .view_name = "iq3_xxs",
    .kind = DTYPE_BLOCK,
    .block_elements = IQ_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 18,
    .n_scales = 1,
    .encode_cost = 60000,
    .kernels = IQ_KERNELS(iq3_xxs),
};
