/* The formats of IQ2 and IQ3. */
#include "base/checked.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/iq_format.h"

#include <string.h>

/* IQ2_XXS: 256 values in 66 bytes. F16 d, then for every 32 values four indices of points and 32 bits: four times seven
 * sign bits, and a scale in the highest four; value = d * (0.5 + scale) / 4 * magnitude. */

enum { IQ2_XXS_SUB_BLOCKS = 8, IQ2_XXS_SUB_BLOCK_BYTES = 8, IQ2_XXS_BYTES = 66 };

static void iq2_xxs_unpack(const uint8_t *block, struct iq_unpacked *unpacked)
{
    float d = f16_load(block);
    const uint8_t *sub_block = block + 2;
    for (int j = 0; j < IQ2_XXS_SUB_BLOCKS; j++, sub_block += IQ2_XXS_SUB_BLOCK_BYTES) {
        uint32_t bits = (uint32_t)read_le(sub_block + 4, 4);
        for (int k = 0; k < 4; k++) {
            unpacked->scales[4 * j + k] = d * (0.5f + (float)(bits >> 28)) * 0.25f;
            unpacked->points[4 * j + k] = sub_block[k];
            unpacked->signs[4 * j + k] = (uint8_t)iq_even_signs(bits >> 7 * k & 127);
        }
    }
}

static void iq2_xxs_pack(const struct iq_found *found, uint8_t *block)
{
    uint8_t *sub_block = block + 2;
    for (int j = 0; j < IQ2_XXS_SUB_BLOCKS; j++, sub_block += IQ2_XXS_SUB_BLOCK_BYTES) {
        for (int k = 0; k < 4; k++)
            sub_block[k] = (uint8_t)found->points[4 * j + k];
        iq_pack_signs(found->signs + 4 * j, found->shares[j], sub_block + 4);
    }
}

static const struct iq_format iq2_xxs_format = {
    .grid = GRID_IQ2_XXS,
    .block_bytes = IQ2_XXS_BYTES,
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
    .unpack = iq2_xxs_unpack,
    .pack = iq2_xxs_pack,
};

DEFINE_IQ_DTYPE(iq2_xxs, "IQ2_XXS", 16, IQ2_XXS_BYTES, WEIGHTED_ENCODER_KERNELS)

/* IQ2_XS: 256 values in 74 bytes. F16 d, a u16 for every eight values (nine bits of the index of a point, seven of
 * signs), and scales of four bits for every 16; value = d * (0.5 + scale) / 4 * magnitude. */

enum { IQ2_XS_SUB_BLOCKS = 16, IQ2_XS_QS = 2, IQ2_XS_SCALES = 66, IQ2_XS_BYTES = 74 };

static void iq2_xs_unpack(const uint8_t *block, struct iq_unpacked *unpacked)
{
    float d = f16_load(block);
    for (int i = 0; i < 2 * IQ2_XS_SUB_BLOCKS; i++) {
        unsigned q = (unsigned)read_le(block + IQ2_XS_QS + 2 * i, 2),
                 share = block[IQ2_XS_SCALES + i / 4] >> 4 * (i / 2 % 2) & 15;
        unpacked->scales[i] = d * (0.5f + (float)share) * 0.25f;
        unpacked->points[i] = q & 511;
        unpacked->signs[i] = (uint8_t)iq_even_signs(q >> 9);
    }
}

static void iq2_xs_pack(const struct iq_found *found, uint8_t *block)
{
    for (int i = 0; i < 2 * IQ2_XS_SUB_BLOCKS; i++) {
        unsigned q = found->points[i] | (unsigned)found->signs[i] << 9;
        block[IQ2_XS_QS + 2 * i] = (uint8_t)q;
        block[IQ2_XS_QS + 2 * i + 1] = (uint8_t)(q >> 8);
    }
    for (int j = 0; j < IQ2_XS_SUB_BLOCKS; j++)
        block[IQ2_XS_SCALES + j / 2] |= (uint8_t)(found->shares[j] << 4 * (j % 2));
}

static const struct iq_format iq2_xs_format = {
    .grid = GRID_IQ2_XS,
    .block_bytes = IQ2_XS_BYTES,
    .sub_elements = 16,
    .even_signs = true,
    .negligible = 1e-15f,
    .n_steps = 9,
    .step = 0.1f,
    .mean_factor = 1,
    .fudge = 1,
    .magnitudes = {8, 25, 43},
    .unpack = iq2_xs_unpack,
    .pack = iq2_xs_pack,
};

DEFINE_IQ_DTYPE(iq2_xs, "IQ2_XS", 17, IQ2_XS_BYTES, WEIGHTED_ENCODER_KERNELS)

/* IQ2_S: 256 values in 82 bytes. F16 d, for every eight values the low byte of a point's index, then a byte of signs
 * for each, then the two high bits of each index, and a 4-bit scale for every 16; value = d * (0.5 + scale) / 4 *
 * magnitude. */

enum { IQ2_S_SUB_BLOCKS = 16, IQ2_S_QS = 2, IQ2_S_SIGNS = 34, IQ2_S_QH = 66, IQ2_S_SCALES = 74, IQ2_S_BYTES = 82 };

static void iq2_s_unpack(const uint8_t *block, struct iq_unpacked *unpacked)
{
    float d = f16_load(block);
    for (int i = 0; i < 2 * IQ2_S_SUB_BLOCKS; i++) {
        unsigned share = block[IQ2_S_SCALES + i / 4] >> 4 * (i / 2 % 2) & 15;
        unpacked->scales[i] = d * (0.5f + (float)share) * 0.25f;
        unpacked->points[i] = (uint16_t)(block[IQ2_S_QS + i] | (block[IQ2_S_QH + i / 4] >> 2 * (i % 4) & 3u) << 8);
        unpacked->signs[i] = block[IQ2_S_SIGNS + i];
    }
}

static void iq2_s_pack(const struct iq_found *found, uint8_t *block)
{
    for (int i = 0; i < 2 * IQ2_S_SUB_BLOCKS; i++) {
        block[IQ2_S_QS + i] = (uint8_t)found->points[i];
        block[IQ2_S_QH + i / 4] |= (uint8_t)(found->points[i] >> 8 << 2 * (i % 4));
        block[IQ2_S_SIGNS + i] = found->signs[i];
    }
    for (int j = 0; j < IQ2_S_SUB_BLOCKS; j++)
        block[IQ2_S_SCALES + j / 2] |= (uint8_t)(found->shares[j] << 4 * (j % 2));
}

static const struct iq_format iq2_s_format = {
    .grid = GRID_IQ2_S,
    .block_bytes = IQ2_S_BYTES,
    .sub_elements = 16,
    .negligible = 1e-8f,
    .keeps_points = true,
    .n_steps = 9,
    .step = 0.1f,
    .mean_factor = 2,
    .plain_share = 0.25f,
    .fudge = 0.9875f,
    .magnitudes = {8, 25, 43},
    .unpack = iq2_s_unpack,
    .pack = iq2_s_pack,
};

DEFINE_IQ_DTYPE(iq2_s, "IQ2_S", 22, IQ2_S_BYTES, ENCODER_KERNELS)

/* IQ3_XXS: 256 values in 98 bytes. F16 d, the index of a point for every four values, and 32 bits for every 32 values:
 * four times seven sign bits, and a scale in the highest four; value = d * (0.5 + scale) / 2 * magnitude. */

enum { IQ3_XXS_SUB_BLOCKS = 8, IQ3_XXS_QS = 2, IQ3_XXS_SIGNS_SCALES = 66, IQ3_XXS_BYTES = 98 };

static void iq3_xxs_unpack(const uint8_t *block, struct iq_unpacked *unpacked)
{
    float d = f16_load(block);
    for (int i = 0; i < 8 * IQ3_XXS_SUB_BLOCKS; i++)
        unpacked->points[i] = block[IQ3_XXS_QS + i];
    for (int i = 0; i < 4 * IQ3_XXS_SUB_BLOCKS; i++) {
        uint32_t bits = (uint32_t)read_le(block + IQ3_XXS_SIGNS_SCALES + i / 4 * 4, 4);
        unpacked->scales[i] = d * (0.5f + (float)(bits >> 28)) * 0.5f;
        unpacked->signs[i] = (uint8_t)iq_even_signs(bits >> 7 * (i % 4) & 127);
    }
}

static void iq3_xxs_pack(const struct iq_found *found, uint8_t *block)
{
    for (int i = 0; i < 8 * IQ3_XXS_SUB_BLOCKS; i++)
        block[IQ3_XXS_QS + i] = (uint8_t)found->points[i];
    for (int j = 0; j < IQ3_XXS_SUB_BLOCKS; j++)
        iq_pack_signs(found->signs + 4 * j, found->shares[j], block + IQ3_XXS_SIGNS_SCALES + 4 * j);
}

static const struct iq_format iq3_xxs_format = {
    .grid = GRID_IQ3_XXS,
    .block_bytes = IQ3_XXS_BYTES,
    .sub_elements = 32,
    .even_signs = true,
    .negligible = 1e-8f,
    .n_steps = 15,
    .step = 0.2f,
    .mean_factor = 2,
    .fudge = 1.0125f,
    .magnitudes = {4, 12, 20, 28, 36, 44, 52, 62},
    .unpack = iq3_xxs_unpack,
    .pack = iq3_xxs_pack,
};

DEFINE_IQ_DTYPE(iq3_xxs, "IQ3_XXS", 18, IQ3_XXS_BYTES, ENCODER_KERNELS)

/* IQ3_S: 256 values in 110 bytes. F16 d, for every four values the low byte of a point's index, then the ninth bit of
 * each index, then a byte of signs for every eight values, and a 4-bit scale for every 32; value = d * (1 + 2 * scale)
 * * magnitude. */

enum { IQ3_S_SUB_BLOCKS = 8, IQ3_S_QS = 2, IQ3_S_QH = 66, IQ3_S_SIGNS = 74, IQ3_S_SCALES = 106, IQ3_S_BYTES = 110 };

static void iq3_s_unpack(const uint8_t *block, struct iq_unpacked *unpacked)
{
    float d = f16_load(block);
    for (int i = 0; i < 8 * IQ3_S_SUB_BLOCKS; i++)
        unpacked->points[i] = (uint16_t)(block[IQ3_S_QS + i] | (block[IQ3_S_QH + i / 8] >> i % 8 & 1u) << 8);
    for (int i = 0; i < 4 * IQ3_S_SUB_BLOCKS; i++) {
        unpacked->scales[i] = d * (float)(1 + 2 * (block[IQ3_S_SCALES + i / 8] >> 4 * (i / 4 % 2) & 15));
        unpacked->signs[i] = block[IQ3_S_SIGNS + i];
    }
}

/* Packs a block. As in the reference, a sub-block of zeros leaves no room for its points and signs, so those of later
 * sub-blocks move forward, to places where no decoder looks for them. */
static void iq3_s_pack(const struct iq_found *found, uint8_t *block)
{
    uint8_t *qs = block + IQ3_S_QS, *signs = block + IQ3_S_SIGNS;
    for (int j = 0; j < IQ3_S_SUB_BLOCKS; j++) {
        block[IQ3_S_SCALES + j / 2] |= (uint8_t)(found->shares[j] << 4 * (j % 2));
        if (!found->searched[j])
            continue;
        for (int k = 0; k < 8; k++) {
            *qs++ = (uint8_t)found->points[8 * j + k];
            block[IQ3_S_QH + j] |= (uint8_t)(found->points[8 * j + k] >> 8 << k);
        }
        memcpy(signs, found->signs + 4 * j, 4);
        signs += 4;
    }
}

static const struct iq_format iq3_s_format = {
    .grid = GRID_IQ3_S,
    .block_bytes = IQ3_S_BYTES,
    .sub_elements = 32,
    .redoes_all = true,
    .begins_off = true,
    .keeps_points = true,
    .n_steps = 9,
    .step = 0.2f,
    .mean_factor = 2,
    .fudge = 1.033f,
    .magnitudes = {1, 3, 5, 7, 9, 11, 13, 15},
    .unpack = iq3_s_unpack,
    .pack = iq3_s_pack,
};

DEFINE_IQ_DTYPE(iq3_s, "IQ3_S", 21, IQ3_S_BYTES, ENCODER_KERNELS)
