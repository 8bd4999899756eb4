#include "quant/iq1.h"

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

bool iq1_snap(const struct grid_search *search, const float *values, const float *weights, const float *numbers, float scale,
              uint8_t *levels, uint16_t *ret_point)
{
    unsigned code = grid_code(search->grid, levels);
    if (search->index[code] >= 0) {
        *ret_point = (uint16_t)search->index[code];
        return true;
    }
    unsigned nearest = search->neighbour[search->first[code]];
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
            nearest = search->neighbour[i];
        }
    }
    memcpy(levels, grid_point(search->grid, nearest), IQ_GROUP);
    *ret_point = (uint16_t)nearest;
    return false;
}
