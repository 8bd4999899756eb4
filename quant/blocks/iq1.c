#include "quant/blocks/iq1.h"

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
