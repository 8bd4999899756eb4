/* IQ4_NL: 32 values in 18 bytes. F16 d, qs[16]; value = d * iq4_levels[index]. */
#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/iq4.h"

enum { QS = 2, BLOCK_BYTES = 18 };

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block);
    for (int i = 0; i < IQ4_ELEMENTS; i++)
        values[i] = d * (float)iq4_levels[block32_nibble(block + QS, i)];
}

static void iq4_nl_encode_by(const struct iq4_loops *loops, const float *values, const float *importance,
                             uint8_t *block, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, values += IQ4_ELEMENTS, block += BLOCK_BYTES) {
        uint8_t levels[IQ4_ELEMENTS];
        float weights[IQ4_ELEMENTS];
        iq4_weights(values, importance != NULL ? importance + i * IQ4_ELEMENTS : NULL, IQ4_ELEMENTS, weights);
        float d = iq4_search(loops, values, weights);
        loops->quantize(values, block32_inverse(d), levels);
        f16_store(block, d);
        block32_pack_nibbles(levels, block + QS);
    }
}

static void iq4_nl_codes(const struct iq4_loops *loops, const float *values, uint8_t *block, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, values += IQ4_ELEMENTS, block += BLOCK_BYTES) {
        uint8_t levels[IQ4_ELEMENTS];
        loops->quantize(values, block32_inverse(f16_load(block)), levels);
        block32_pack_nibbles(levels, block + QS);
    }
}

static float iq4_nl_load_scales(const uint8_t *block, float scales[SCALE_FORM_MOST])
{
    return scales[0] = f16_load(block);
}

DEFINE_IQ4_DTYPE(iq4_nl, "IQ4_NL", 20, IQ4_ELEMENTS, QS)
