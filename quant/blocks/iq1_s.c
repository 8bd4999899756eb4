/* IQ1_S: 256 values in 50 bytes. F16 d, for every eight values the low byte of a point's index, and a u16 for every 32:
 * three high bits of each of four indices, a 3-bit scale, and one bit for the shift; value = d * (2 * scale + 1) *
 * (level - 1 + shift). */
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/iq1.h"
#include "quant/blocks/k_search.h"
#include "quant/blocks/weights.h"

enum { BLOCK_BYTES = IQ1_S_BYTES };

static void iq1_s_decode(const void *blocks, float *values, size_t n_blocks)
{
    iq1_s_decode_by(iq1_decode_point, blocks, values, n_blocks);
}

static const struct iq1_kind kind = {IQ1_S_SUB_ELEMENTS, 1e-12f, 1};

static void encode_block(const struct iq1_loops *loops, const struct grid_search *tables, const float *values,
                         const float *importance, uint8_t *block)
{
    struct iq1_found found[IQ1_S_SUB_BLOCKS];
    float weights[IQ_ELEMENTS], largest = 0;
    importance_weights(values, importance, 2 * sum_of_squares(values, IQ_ELEMENTS) / IQ_ELEMENTS, IQ_ELEMENTS, weights);
    iq1_search(loops, tables, &kind, values, weights, found);
    for (int j = 0; j < IQ1_S_SUB_BLOCKS; j++)
        largest = found[j].scale > largest ? found[j].scale : largest;
    memset(block, 0, BLOCK_BYTES);
    if (largest == 0)
        return;
    float d = largest / 15, inverse = 1 / d;
    f16_store(block, d * 1.125f);
    for (int j = 0; j < IQ1_S_SUB_BLOCKS; j++) {
        int share = clamp_int(nearest_int(0.5f * (inverse * found[j].scale - 1)), 0, 7);
        unsigned high = (unsigned)(share | (found[j].down ? 8 : 0)) << 12;
        for (int k = 0; k < 4; k++) {
            block[IQ1_S_QS + 4 * j + k] = (uint8_t)found[j].points[k];
            high |= (unsigned)(found[j].points[k] >> 8) << 3 * k;
        }
        block[IQ1_S_QH + 2 * j] = (uint8_t)high;
        block[IQ1_S_QH + 2 * j + 1] = (uint8_t)(high >> 8);
    }
}

static void encode_by(const struct iq1_loops *loops, const float *values, const float *importance, uint8_t *blocks,
                      size_t n_blocks)
{
    const struct grid_search *tables = n_blocks != 0 ? grid_search_of(GRID_IQ1) : NULL;
    for (size_t i = 0; i < n_blocks; i++)
        encode_block(loops, tables, values + i * IQ_ELEMENTS, importance + i * IQ_ELEMENTS, blocks + i * BLOCK_BYTES);
}

DEFINE_ENCODERS_BY_LOOPS(iq1_s, encode_by, iq1)

decode_function iq1_s_decode_neon, iq1_s_decode_avx2;

const struct dtype iq1_s_dtype = {
    BLOCK_DTYPE(iq1_s, "IQ1_S", 19, IQ_ELEMENTS),
    .n_scales = 1,
    .encode_cost = 60000,
    .kernels = WEIGHTED_ENCODER_KERNELS(iq1_s, iq1_s_decode_neon, iq1_s_decode_avx2),
};
