/* The search that IQ4_NL and IQ4_XS share. */
#include "quant/blocks/iq4.h"

#include "quant/blocks/block32.h"
#include "quant/blocks/weights.h"

const int8_t iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

const float iq4_midpoints[15] = {-115.5f, -93.5f, -74, -57, -42, -28.5f, -16, -4.5f, 7, 19, 31.5f, 45.5f, 61, 79, 101};

void iq4_weights(const float *values, const float *importance, int n, float *weights)
{
    if (importance != NULL)
        importance_weights(values, importance, sum_of_squares(values, n) * (2.f / (float)n), n, weights);
    for (int i = 0; importance == NULL && i < n; i++)
        weights[i] = values[i] * values[i];
}

/* Sets the inverses of the scales to try. */
static void find_inverses(float largest, float inverses[IQ4_TRIES])
{
    float scale = -largest / (float)iq4_levels[0];
    inverses[0] = 1 / scale;
    for (int step = -7; step <= 7; step++)
        inverses[step + 8] = (float)(step + iq4_levels[0]) / largest;
}

static float best_scale(const struct iq4_sums *sums)
{
    float scale = sums->q2[0] > 0 ? sums->qx[0] / sums->q2[0] : 0, best = scale * sums->qx[0];
    for (int i = 1; i < IQ4_TRIES; i++)
        if (sums->q2[i] > 0 && sums->qx[i] * sums->qx[i] > best * sums->q2[i]) {
            scale = sums->qx[i] / sums->q2[i];
            best = scale * sums->qx[i];
        }
    return scale;
}

float iq4_search(const struct iq4_loops *loops, const float *values, const float *weights)
{
    static const float negligible = 1e-15f;
    float largest = loops->largest(values), inverses[IQ4_TRIES];
    struct iq4_sums sums;
    if (fabsf(largest) < negligible)
        return 0;
    find_inverses(largest, inverses);
    loops->sum_up(values, weights, inverses, &sums);
    return best_scale(&sums);
}

static unsigned nearest_level(float value)
{
    unsigned level = value >= iq4_midpoints[7] ? 8 : 0;
    level += value >= iq4_midpoints[level + 3] ? 4 : 0;
    level += value >= iq4_midpoints[level + 1] ? 2 : 0;
    return level + (value >= iq4_midpoints[level]);
}

static float find_largest(const float *values)
{
    return largest_by_magnitude(values, IQ4_ELEMENTS);
}

static void sum_up(const float *values, const float *weights, const float inverses[IQ4_TRIES],
                   struct iq4_sums *ret_sums)
{
    for (int i = 0; i < IQ4_TRIES; i++) {
        float sum_qx = 0, sum_q2 = 0;
        for (int j = 0; j < IQ4_ELEMENTS; j++) {
            float q = (float)iq4_levels[nearest_level(inverses[i] * values[j])];
            sum_qx += weights[j] * q * values[j];
            sum_q2 += weights[j] * q * q;
        }
        ret_sums->qx[i] = sum_qx;
        ret_sums->q2[i] = sum_q2;
    }
}

static void quantize(const float *values, float inverse, uint8_t levels[IQ4_ELEMENTS])
{
    for (int i = 0; i < IQ4_ELEMENTS; i++)
        levels[i] = (uint8_t)nearest_level(inverse * values[i]);
}

const struct iq4_loops iq4_portable_loops = {find_largest, sum_up, quantize};
