#include "quant/iq4.h"

#include "quant/block32.h"
#include "quant/weights.h"

const int8_t iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

const float iq4_midpoints[15] = {-115.5f, -93.5f, -74, -57, -42, -28.5f, -16, -4.5f, 7, 19, 31.5f, 45.5f, 61, 79, 101};

void iq4_weights(const float *values, const float *importance, int n, float *weights)
{
    if (importance != NULL)
        importance_weights(values, importance, sum_of_squares(values, n) * (2.f / (float)n), n, weights);
    for (int i = 0; importance == NULL && i < n; i++)
        weights[i] = values[i] * values[i];
}

void iq4_inverses(float largest, float inverses[IQ4_TRIES])
{
    float scale = -largest / (float)iq4_levels[0];
    inverses[0] = 1 / scale;
    for (int step = -7; step <= 7; step++)
        inverses[step + 8] = (float)(step + iq4_levels[0]) / largest;
}

float iq4_best_scale(const float sums_qx[IQ4_TRIES], const float sums_q2[IQ4_TRIES])
{
    float scale = sums_q2[0] > 0 ? sums_qx[0] / sums_q2[0] : 0, best = scale * sums_qx[0];
    for (int i = 1; i < IQ4_TRIES; i++)
        if (sums_q2[i] > 0 && sums_qx[i] * sums_qx[i] > best * sums_q2[i]) {
            scale = sums_qx[i] / sums_q2[i];
            best = scale * sums_qx[i];
        }
    return scale;
}

static unsigned nearest_level(float value)
{
    unsigned level = value >= iq4_midpoints[7] ? 8 : 0;
    level += value >= iq4_midpoints[level + 3] ? 4 : 0;
    level += value >= iq4_midpoints[level + 1] ? 2 : 0;
    return level + (value >= iq4_midpoints[level]);
}

static float search(const float *values, const float *weights)
{
    float largest = largest_by_magnitude(values, BLOCK32_ELEMENTS);
    if (fabsf(largest) < IQ4_NEGLIGIBLE)
        return 0;
    float inverses[IQ4_TRIES], sums_qx[IQ4_TRIES] = {0}, sums_q2[IQ4_TRIES] = {0};
    iq4_inverses(largest, inverses);
    for (int i = 0; i < IQ4_TRIES; i++)
        for (int j = 0; j < IQ4_ELEMENTS; j++) {
            float q = (float)iq4_levels[nearest_level(inverses[i] * values[j])];
            sums_qx[i] += weights[j] * q * values[j];
            sums_q2[i] += weights[j] * q * q;
        }
    return iq4_best_scale(sums_qx, sums_q2);
}

static void quantize(const float *values, float inverse, uint8_t levels[IQ4_ELEMENTS])
{
    for (int i = 0; i < IQ4_ELEMENTS; i++)
        levels[i] = (uint8_t)nearest_level(inverse * values[i]);
}

const struct iq4_loops iq4_portable_loops = {search, quantize};
