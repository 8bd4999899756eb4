/* IQ1_S and IQ1_M: the searches that they share, and each format. */
#include "quant/blocks/iq1.h"

#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/k_search.h"
#include "quant/blocks/weights.h"

#include <float.h>
#include <string.h>

const float iq1_up[3] = {-1 + IQ1_SHIFT, IQ1_SHIFT, 1 + IQ1_SHIFT};
const float iq1_down[3] = {-1 - IQ1_SHIFT, -IQ1_SHIFT, 1 - IQ1_SHIFT};

void iq1_sort(const float *values, int n, uint8_t *order)
{
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && values[order[at - 1]] > values[i]; at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)i;
    }
}

/* Finds the best way to divide the values by prefix sums; returns false if there is none. */
static bool divide_s(const float *values, const float *weights, const uint8_t *order, struct iq1_division *ret_division)
{
    float sums_x[IQ1_S_SUB_ELEMENTS + 1] = {0}, sums_w[IQ1_S_SUB_ELEMENTS + 1] = {0}, best = -FLT_MAX;
    bool found = false;
    for (int j = 0; j < IQ1_S_SUB_ELEMENTS; j++) {
        sums_x[j + 1] = sums_x[j] + weights[order[j]] * values[order[j]];
        sums_w[j + 1] = sums_w[j] + weights[order[j]];
    }
    for (int one = 0; one <= IQ1_S_SUB_ELEMENTS; one++)
        for (int two = one; two <= IQ1_S_SUB_ELEMENTS; two++)
            for (int down = 0; down < 2; down++) {
                const float *p = down ? iq1_down : iq1_up;
                float sum_qx = sums_x[one] * p[0] + (sums_x[two] - sums_x[one]) * p[1] +
                               (sums_x[IQ1_S_SUB_ELEMENTS] - sums_x[two]) * p[2];
                float sum_q2 = sums_w[one] * p[0] * p[0] + (sums_w[two] - sums_w[one]) * p[1] * p[1] +
                               (sums_w[IQ1_S_SUB_ELEMENTS] - sums_w[two]) * p[2] * p[2];
                if (!(sum_q2 > 0 && sum_qx * sum_qx > best * sum_q2))
                    continue;
                *ret_division = (struct iq1_division){one, two, (unsigned)down, sum_qx / sum_q2};
                best = ret_division->scale * sum_qx;
                found = true;
            }
    return found;
}

/* Computes the sums of one way to divide the values, for each way to shift the groups. */
static void sum_up(const float *values, const float *weights, const uint8_t *order, int one, int two, float sums_qx[4],
                   float sums_q2[4])
{
    for (unsigned down = 0; down < 4; down++)
        sums_qx[down] = sums_q2[down] = 0;
    for (int j = 0; j < IQ1_M_SUB_ELEMENTS; j++) {
        int i = order[j], level = (j >= one) + (j >= two);
        for (unsigned down = 0; down < 4; down++) {
            float weighted = weights[i] * iq1_numbers(down, i / IQ_GROUP)[level];
            sums_qx[down] += weighted * values[i];
            sums_q2[down] += weighted * iq1_numbers(down, i / IQ_GROUP)[level];
        }
    }
}

static bool divide_m(const float *values, const float *weights, const uint8_t *order, struct iq1_division *ret_division)
{
    float sums_qx[4], sums_q2[4], best = -FLT_MAX;
    bool found = false;
    for (int one = 0; one <= IQ1_M_SUB_ELEMENTS; one++)
        for (int two = one; two <= IQ1_M_SUB_ELEMENTS; two++) {
            sum_up(values, weights, order, one, two, sums_qx, sums_q2);
            for (unsigned down = 0; down < 4; down++) {
                if (!(sums_q2[down] > 0 && sums_qx[down] * sums_qx[down] > best * sums_q2[down]))
                    continue;
                *ret_division = (struct iq1_division){one, two, down, sums_qx[down] / sums_q2[down]};
                best = ret_division->scale * sums_qx[down];
                found = true;
            }
        }
    return found;
}

static unsigned nearest(const struct grid_search *search, unsigned code, const float *values, const float *weights,
                        const float *numbers, float scale)
{
    unsigned found = search->neighbour[search->first[code]];
    float least = FLT_MAX;
    for (uint32_t i = search->first[code]; i < search->first[code + 1]; i++) {
        const uint8_t *point = grid_point(search->grid, search->neighbour[i]);
        float distance = 0;
        for (int j = 0; j < IQ_GROUP; j++) {
            float difference = scale * numbers[point[j]] - values[j];
            distance += weights[j] * difference * difference;
        }
        if (distance < least) {
            least = distance;
            found = search->neighbour[i];
        }
    }
    return found;
}

const struct iq1_loops iq1_portable_loops = {iq1_sort, divide_s, divide_m, nearest};

bool iq1_snap(const struct iq1_loops *loops, const struct grid_search *search, unsigned code, const float *values,
              const float *weights, const float *numbers, float scale, uint8_t *levels, uint16_t *ret_point)
{
    bool on_grid = search->index[code] >= 0;
    *ret_point = on_grid ? (uint16_t)search->index[code]
                         : (uint16_t)loops->nearest(search, code, values, weights, numbers, scale);
    memcpy(levels, grid_point(search->grid, *ret_point), IQ_GROUP);
    return on_grid;
}

/* IQ1_S: 256 values in 50 bytes. F16 d, for every eight values the low byte of a point's index, and a u16 for every 32:
 * three high bits of each of four indices, a 3-bit scale, and one bit for the shift; value = d * (2 * scale + 1) *
 * (level - 1 + shift). */

static void iq1_s_decode(const void *blocks, float *values, size_t n_blocks)
{
    iq1_s_decode_by(iq1_decode_point, blocks, values, n_blocks);
}

static const struct iq1_kind iq1_s_kind = {IQ1_S_SUB_ELEMENTS, 1e-12f, 1};

static void iq1_s_encode_block(const struct iq1_loops *loops, const struct grid_search *tables, const float *values,
                               const float *importance, uint8_t *block)
{
    struct iq1_found found[IQ1_S_SUB_BLOCKS];
    float weights[IQ_ELEMENTS], largest = 0;
    importance_weights(values, importance, 2 * sum_of_squares(values, IQ_ELEMENTS) / IQ_ELEMENTS, IQ_ELEMENTS, weights);
    iq1_search(loops, tables, &iq1_s_kind, values, weights, found);
    for (int j = 0; j < IQ1_S_SUB_BLOCKS; j++)
        largest = found[j].scale > largest ? found[j].scale : largest;
    memset(block, 0, IQ1_S_BYTES);
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

static void iq1_s_encode_by(const struct iq1_loops *loops, const float *values, const float *importance,
                            uint8_t *blocks, size_t n_blocks)
{
    const struct grid_search *tables = n_blocks != 0 ? grid_search_of(GRID_IQ1) : NULL;
    for (size_t i = 0; i < n_blocks; i++)
        iq1_s_encode_block(loops, tables, values + i * IQ_ELEMENTS, importance + i * IQ_ELEMENTS,
                           blocks + i * IQ1_S_BYTES);
}

DEFINE_ENCODERS_BY_LOOPS(iq1_s, iq1_s_encode_by, iq1)

decode_function iq1_s_decode_neon, iq1_s_decode_avx2;

const struct dtype iq1_s_dtype = {
    BLOCK_DTYPE(iq1_s, "IQ1_S", 19, IQ_ELEMENTS, IQ1_S_BYTES),
    .n_scales = 1,
    .encode_cost = 60000,
    .kernels = WEIGHTED_ENCODER_KERNELS(iq1_s, iq1_s_decode_neon, iq1_s_decode_avx2),
};

/* IQ1_M: 256 values in 56 bytes. For every eight values the low byte of a point's index, then for each four bits: the
 * index's three high bits and the shift; then four u16, each with four 3-bit scales for 16 values, and four bits of F16
 * d at the top; value = d * (2 * scale + 1) * (level - 1 + shift). */

static bool iq1_m_scale_finite(const void *block)
{
    return (iq1_m_load_d(block) & 0x7c00) != 0x7c00;
}

static void iq1_m_decode(const void *blocks, float *values, size_t n_blocks)
{
    iq1_m_decode_by(iq1_decode_point, blocks, values, n_blocks);
}

static const struct iq1_kind iq1_m_kind = {IQ1_M_SUB_ELEMENTS, 1e-7f, 3};

/* Stores the scales of sub-blocks as multiples of d; returns the d that then fits all values best. */
static float iq1_m_store_shares(const struct grid *grid, const struct iq1_found *found, const float *values,
                                const float *weights, float d, uint8_t *block)
{
    float inverse = 1 / d, sum_qx = 0, sum_q2 = 0;
    for (int j = 0; j < IQ1_M_SUB_BLOCKS; j++) {
        int share = clamp_int(nearest_int(0.5f * (inverse * found[j].scale - 1)), 0, 7);
        unsigned shifted = (unsigned)share << 3 * (j % 4);
        block[IQ1_M_SCALES + 2 * (j / 4)] |= (uint8_t)shifted;
        block[IQ1_M_SCALES + 2 * (j / 4) + 1] |= (uint8_t)(shifted >> 8);
        block[IQ1_M_QH + j] |= (uint8_t)((found[j].down >> 1 & 1) << 3 | (found[j].down & 1) << 7);
        for (int i = 0; i < IQ1_M_SUB_ELEMENTS; i++) {
            uint8_t level = grid_point(grid, found[j].points[i / IQ_GROUP])[i % IQ_GROUP];
            float q = iq1_numbers(found[j].down, i / IQ_GROUP)[level] * (float)(2 * share + 1);
            sum_qx += weights[j * IQ1_M_SUB_ELEMENTS + i] * q * values[j * IQ1_M_SUB_ELEMENTS + i];
            sum_q2 += weights[j * IQ1_M_SUB_ELEMENTS + i] * q * q;
        }
    }
    return sum_q2 > 0 ? sum_qx / sum_q2 : d;
}

static void iq1_m_encode_block(const struct iq1_loops *loops, const struct grid_search *tables, const float *values,
                               const float *importance, uint8_t *block)
{
    struct iq1_found found[IQ1_M_SUB_BLOCKS];
    float weights[IQ_ELEMENTS], largest = 0;
    if (importance != NULL)
        importance_weights(values, importance, 2 * sum_of_squares(values, IQ_ELEMENTS) / IQ_ELEMENTS, IQ_ELEMENTS,
                           weights);
    for (int i = 0; importance == NULL && i < IQ_ELEMENTS; i++)
        weights[i] = values[i] * values[i];
    memset(block, 0, IQ1_M_BYTES);
    iq1_search(loops, tables, &iq1_m_kind, values, weights, found);
    for (int j = 0; j < IQ1_M_SUB_BLOCKS; j++) {
        largest = found[j].scale > largest ? found[j].scale : largest;
        for (int k = 0; k < 2; k++) {
            block[2 * j + k] = (uint8_t)found[j].points[k];
            block[IQ1_M_QH + j] |= (uint8_t)(found[j].points[k] >> 8 << 4 * k);
        }
    }
    if (largest == 0) {
        memset(block, 0, IQ1_M_BYTES);
        return;
    }
    uint8_t d[2];
    f16_store(d, iq1_m_store_shares(tables->grid, found, values, weights, largest / 15, block) * 1.1125f);
    for (int k = 0; k < 4; k++)
        block[IQ1_M_SCALES + 2 * k + 1] |= (uint8_t)((d[k / 2] >> 4 * (k % 2) & 15) << 4);
}

static void iq1_m_encode_by(const struct iq1_loops *loops, const float *values, const float *importance,
                            uint8_t *blocks, size_t n_blocks)
{
    const struct grid_search *tables = n_blocks != 0 ? grid_search_of(GRID_IQ1) : NULL;
    for (size_t i = 0; i < n_blocks; i++)
        iq1_m_encode_block(loops, tables, values + i * IQ_ELEMENTS,
                           importance != NULL ? importance + i * IQ_ELEMENTS : NULL, blocks + i * IQ1_M_BYTES);
}

DEFINE_ENCODERS_BY_LOOPS(iq1_m, iq1_m_encode_by, iq1)

decode_function iq1_m_decode_neon, iq1_m_decode_avx2;

const struct dtype iq1_m_dtype = {
    BLOCK_DTYPE(iq1_m, "IQ1_M", 29, IQ_ELEMENTS, IQ1_M_BYTES),
    .scales_finite = iq1_m_scale_finite,
    .encode_cost = 60000,
    .kernels = ENCODER_KERNELS(iq1_m, iq1_m_decode_neon, iq1_m_decode_avx2),
};
