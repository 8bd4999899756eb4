#include "quant/k_format.h"

#include <math.h>

/* The scale of one sub-block, with the minimum where the kind has one. */
static float search(const struct k_format *format, const float *values, uint8_t *levels, float *ret_minimum)
{
    float weights[32], squares = 0, average = 0;
    int n = format->sub_elements;
    if (format->kind == K_REFINED)
        return k_search_refined(n, -format->low, values, levels);
    if (format->kind == K_SYMMETRIC)
        return k_search_symmetric(n, -format->low, values, levels);
    if (format->kind == K_RANGE_AVERAGE) {
        for (int i = 0; i < n; i++)
            squares += values[i] * values[i];
        average = sqrtf(squares / (float)n);
    }
    for (int i = 0; i < n; i++)
        weights[i] = average + fabsf(values[i]);
    return k_search_range(&format->range, n, values, weights, levels, ret_minimum);
}

static void encode_block(const struct k_format *format, const float *values, uint8_t *block)
{
    uint8_t levels[K_ELEMENTS];
    float scales[K_MOST_SUB_BLOCKS] = {0}, minimums[K_MOST_SUB_BLOCKS] = {0};
    int n = format->sub_elements;
    float low = (float)format->low, high = (float)format->high;
    for (int j = 0; j < K_ELEMENTS / n; j++)
        scales[j] = search(format, values + j * n, levels + j * n, &minimums[j]);
    if (!format->store_scales(scales, minimums, block)) {
        memset(block, 0, format->block_bytes);
        return;
    }
    format->load_scales(block, scales, minimums);
    for (int j = 0; j < K_ELEMENTS / n; j++)
        for (int i = j * n; scales[j] != 0 && i < (j + 1) * n; i++)
            levels[i] = (uint8_t)(k_level((values[i] + minimums[j]) / scales[j], low, high) - low);
    format->pack(levels, block);
}

void k_encode(const struct k_format *format, const float *values, uint8_t *blocks, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        encode_block(format, values + i * K_ELEMENTS, blocks + i * format->block_bytes);
}
