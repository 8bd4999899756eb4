/* IQ2_XS: 256 values in 74 bytes. F16 d, a u16 for every eight values (nine bits of the index of a point, seven of
 * signs), and scales of four bits for every 16; value = d * (0.5 + scale) / 4 * magnitude. */
#include "quant/blocks/f16.h"
#include "quant/blocks/iq_format.h"

#include "base/checked.h"

enum { SUB_BLOCKS = 16, QS = 2, SCALES = 66, BLOCK_BYTES = 74 };

static void unpack(const uint8_t *block, struct iq_unpacked *unpacked)
{
    float d = f16_load(block);
    for (int i = 0; i < 2 * SUB_BLOCKS; i++) {
        unsigned q = (unsigned)read_le(block + QS + 2 * i, 2), share = block[SCALES + i / 4] >> 4 * (i / 2 % 2) & 15;
        unpacked->scales[i] = d * (0.5f + (float)share) * 0.25f;
        unpacked->points[i] = q & 511;
        unpacked->signs[i] = (uint8_t)iq_even_signs(q >> 9);
    }
}

static void pack(const struct iq_found *found, uint8_t *block)
{
    for (int i = 0; i < 2 * SUB_BLOCKS; i++) {
        unsigned q = found->points[i] | (unsigned)found->signs[i] << 9;
        block[QS + 2 * i] = (uint8_t)q;
        block[QS + 2 * i + 1] = (uint8_t)(q >> 8);
    }
    for (int j = 0; j < SUB_BLOCKS; j++)
        block[SCALES + j / 2] |= (uint8_t)(found->shares[j] << 4 * (j % 2));
}

static const struct iq_format iq2_xs_format = {
    .grid = GRID_IQ2_XS,
    .block_bytes = BLOCK_BYTES,
    .sub_elements = 16,
    .even_signs = true,
    .negligible = 1e-15f,
    .n_steps = 9,
    .step = 0.1f,
    .mean_factor = 1,
    .fudge = 1,
    .magnitudes = {8, 25, 43},
    .unpack = unpack,
    .pack = pack,
};

DEFINE_IQ_DTYPE(iq2_xs, "IQ2_XS", 17, WEIGHTED_ENCODER_KERNELS)
