/* IQ4_NL and IQ4_XS. */
#include "quant/blocks/iq4.h"

#include "base/checked.h"
#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/k_search.h"
#include "quant/blocks/weights.h"

/* IQ4_NL: 32 values in 18 bytes. F16 d, qs[16]; value = d * iq4_levels[index]. */

enum { IQ4_NL_QS = 2, IQ4_NL_BYTES = 18 };

static void iq4_nl_decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block);
    for (int i = 0; i < IQ4_ELEMENTS; i++)
        values[i] = d * (float)iq4_levels[block32_nibble(block + IQ4_NL_QS, i)];
}

static void iq4_nl_encode_by(const struct iq4_loops *loops, const float *values, const float *importance,
                             uint8_t *block, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, values += IQ4_ELEMENTS, block += IQ4_NL_BYTES) {
        uint8_t levels[IQ4_ELEMENTS];
        float weights[IQ4_ELEMENTS];
        iq4_weights(values, importance != NULL ? importance + i * IQ4_ELEMENTS : NULL, IQ4_ELEMENTS, weights);
        float d = iq4_search(loops, values, weights);
        loops->quantize(values, block32_inverse(d), levels);
        f16_store(block, d);
        block32_pack_nibbles(levels, block + IQ4_NL_QS);
    }
}

static void iq4_nl_codes(const struct iq4_loops *loops, const float *values, uint8_t *block, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, values += IQ4_ELEMENTS, block += IQ4_NL_BYTES) {
        uint8_t levels[IQ4_ELEMENTS];
        loops->quantize(values, block32_inverse(f16_load(block)), levels);
        block32_pack_nibbles(levels, block + IQ4_NL_QS);
    }
}

static float iq4_nl_load_scales(const uint8_t *block, float scales[SCALE_FORM_MOST])
{
    return scales[0] = f16_load(block);
}

DEFINE_IQ4_DTYPE(iq4_nl, "IQ4_NL", 20, IQ4_ELEMENTS, IQ4_NL_BYTES, IQ4_NL_QS)

/* IQ4_XS: 256 values in 136 bytes. Eight sub-blocks of 32 with a signed 6-bit scale each.
 * Bytes: F16 d, u16 scales_h (upper two bits), scales_l[4] (low four), qs[128]; value = d * (scale - 32) *
 * iq4_levels[index]. */

static void iq4_xs_decode_block(const uint8_t *block, float *values)
{
    for (int j = 0; j < IQ4_XS_SUB_BLOCKS; j++) {
        float scale = iq4_xs_scale(block, j);
        for (int i = 0; i < IQ4_ELEMENTS; i++)
            values[j * IQ4_ELEMENTS + i] = scale * (float)iq4_levels[block32_nibble(block + IQ4_XS_QS + 16 * j, i)];
    }
}

static void iq4_xs_pack_scale(uint8_t *block, int j, int share)
{
    unsigned stored = (unsigned)(share + 32);
    block[IQ4_XS_SCALES_L + j / 2] |= (uint8_t)((stored & 15) << (4 * (j % 2)));
    block[IQ4_XS_SCALES_H + j / 4] |= (uint8_t)(stored >> 4 << (2 * (j % 4)));
}

static void iq4_xs_encode_block(const struct iq4_loops *loops, const float *values, const float *importance,
                                uint8_t *block)
{
    float scales[IQ4_XS_SUB_BLOCKS], weights[K_ELEMENTS];
    iq4_weights(values, importance, K_ELEMENTS, weights);
    for (int j = 0; j < IQ4_XS_SUB_BLOCKS; j++)
        scales[j] = iq4_search(loops, values + j * IQ4_ELEMENTS, weights + j * IQ4_ELEMENTS);
    float d = -largest_by_magnitude(scales, IQ4_XS_SUB_BLOCKS) / 32, inverse = block32_inverse(d);
    memset(block, 0, IQ4_XS_QS);
    f16_store(block, d);
    for (int j = 0; j < IQ4_XS_SUB_BLOCKS; j++) {
        uint8_t levels[IQ4_ELEMENTS];
        int share = clamp_int(nearest_int(inverse * scales[j]), -32, 31);
        loops->quantize(values + j * IQ4_ELEMENTS, block32_inverse(d * (float)share), levels);
        iq4_xs_pack_scale(block, j, share);
        block32_pack_nibbles(levels, block + IQ4_XS_QS + 16 * j);
    }
}

static void iq4_xs_encode_by(const struct iq4_loops *loops, const float *values, const float *importance,
                             uint8_t *blocks, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        iq4_xs_encode_block(loops, values + i * K_ELEMENTS, importance != NULL ? importance + i * K_ELEMENTS : NULL,
                            blocks + i * IQ4_XS_BYTES);
}

static void iq4_xs_codes(const struct iq4_loops *loops, const float *values, uint8_t *block, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, block += IQ4_XS_BYTES)
        for (int j = 0; j < IQ4_XS_SUB_BLOCKS; j++, values += IQ4_ELEMENTS) {
            uint8_t levels[IQ4_ELEMENTS];
            loops->quantize(values, block32_inverse(iq4_xs_scale(block, j)), levels);
            block32_pack_nibbles(levels, block + IQ4_XS_QS + 16 * j);
        }
}

static float iq4_xs_load_scales(const uint8_t *block, float scales[SCALE_FORM_MOST])
{
    for (int j = 0; j < IQ4_XS_SUB_BLOCKS; j++)
        scales[j] = iq4_xs_scale(block, j);
    return f16_load(block);
}

DEFINE_IQ4_DTYPE(iq4_xs, "IQ4_XS", 23, K_ELEMENTS, IQ4_XS_BYTES, IQ4_XS_QS)
