/* IQ1_M: 256 values in 56 bytes. For every eight values the low byte of a point's index, then for each four bits: the
 * index's three high bits and the shift; then four u16, each with four 3-bit scales for 16 values, and four bits of F16
 * d at the top; value = d * (2 * scale + 1) * (level - 1 + shift). */
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/iq1.h"
#include "quant/blocks/k_search.h"
#include "quant/blocks/weights.h"

enum { SUB_ELEMENTS = 16, BLOCK_BYTES = IQ1_M_BYTES };

static bool scale_finite(const void *block)
{
    return (iq1_m_load_d(block) & 0x7c00) != 0x7c00;
}

static void iq1_m_decode(const void *blocks, float *values, size_t n_blocks)
{
    iq1_m_decode_by(iq1_decode_point, blocks, values, n_blocks);
}

static const struct iq1_kind kind = {IQ1_M_SUB_ELEMENTS, 1e-7f, 3};

/* Stores the scales of sub-blocks as multiples of d; returns the d that then fits all values best. */
static float store_shares(const struct grid *grid, const struct iq1_found *found, const float *values,
                          const float *weights, float d, uint8_t *block)
{
    float inverse = 1 / d, sum_qx = 0, sum_q2 = 0;
    for (int j = 0; j < IQ1_M_SUB_BLOCKS; j++) {
        int share = clamp_int(nearest_int(0.5f * (inverse * found[j].scale - 1)), 0, 7);
        unsigned shifted = (unsigned)share << 3 * (j % 4);
        block[IQ1_M_SCALES + 2 * (j / 4)] |= (uint8_t)shifted;
        block[IQ1_M_SCALES + 2 * (j / 4) + 1] |= (uint8_t)(shifted >> 8);
        block[IQ1_M_QH + j] |= (uint8_t)((found[j].down >> 1 & 1) << 3 | (found[j].down & 1) << 7);
        for (int i = 0; i < SUB_ELEMENTS; i++) {
            uint8_t level = grid_point(grid, found[j].points[i / IQ_GROUP])[i % IQ_GROUP];
            float q = iq1_numbers(found[j].down, i / IQ_GROUP)[level] * (float)(2 * share + 1);
            sum_qx += weights[j * SUB_ELEMENTS + i] * q * values[j * SUB_ELEMENTS + i];
            sum_q2 += weights[j * SUB_ELEMENTS + i] * q * q;
        }
    }
    return sum_q2 > 0 ? sum_qx / sum_q2 : d;
}

static void encode_block(const struct iq1_loops *loops, const struct grid_search *tables, const float *values,
                         const float *importance, uint8_t *block)
{
    struct iq1_found found[IQ1_M_SUB_BLOCKS];
    float weights[IQ_ELEMENTS], largest = 0;
    if (importance != NULL)
        importance_weights(values, importance, 2 * sum_of_squares(values, IQ_ELEMENTS) / IQ_ELEMENTS, IQ_ELEMENTS,
                           weights);
    for (int i = 0; importance == NULL && i < IQ_ELEMENTS; i++)
        weights[i] = values[i] * values[i];
    memset(block, 0, BLOCK_BYTES);
    iq1_search(loops, tables, &kind, values, weights, found);
    for (int j = 0; j < IQ1_M_SUB_BLOCKS; j++) {
        largest = found[j].scale > largest ? found[j].scale : largest;
        for (int k = 0; k < 2; k++) {
            block[2 * j + k] = (uint8_t)found[j].points[k];
            block[IQ1_M_QH + j] |= (uint8_t)(found[j].points[k] >> 8 << 4 * k);
        }
    }
    if (largest == 0) {
        memset(block, 0, BLOCK_BYTES);
        return;
    }
    uint8_t d[2];
    f16_store(d, store_shares(tables->grid, found, values, weights, largest / 15, block) * 1.1125f);
    for (int k = 0; k < 4; k++)
        block[IQ1_M_SCALES + 2 * k + 1] |= (uint8_t)((d[k / 2] >> 4 * (k % 2) & 15) << 4);
}

static void encode_by(const struct iq1_loops *loops, const float *values, const float *importance, uint8_t *blocks,
                      size_t n_blocks)
{
    const struct grid_search *tables = n_blocks != 0 ? grid_search_of(GRID_IQ1) : NULL;
    for (size_t i = 0; i < n_blocks; i++)
        encode_block(loops, tables, values + i * IQ_ELEMENTS, importance != NULL ? importance + i * IQ_ELEMENTS : NULL,
                     blocks + i * BLOCK_BYTES);
}

DEFINE_ENCODERS_BY_LOOPS(iq1_m, encode_by, iq1)

decode_function iq1_m_decode_neon, iq1_m_decode_avx2;

const struct dtype iq1_m_dtype = {
    BLOCK_DTYPE(iq1_m, "IQ1_M", 29, IQ_ELEMENTS),
    .scales_finite = scale_finite,
    .encode_cost = 60000,
    .kernels = ENCODER_KERNELS(iq1_m, iq1_m_decode_neon, iq1_m_decode_avx2),
};
