#include "quant/blocks/k_format.h"

#include "quant/blocks/weights.h"

/* Returns the scale of one sub-block, and its minimum if the kind has one. */
static float search(const struct k_format *format, const float *values, uint8_t *levels, float *ret_minimum)
{
    float weights[32], average = 0;
    int n = format->sub_elements;
    if (format->kind == K_REFINED)
        return k_search_refined(n, -format->low, values, levels);
    if (format->kind == K_RANGE_AVERAGE)
        average = sqrtf(sum_of_squares(values, n) / (float)n);
    for (int i = 0; i < n; i++)
        weights[i] = format->kind == K_SYMMETRIC ? values[i] * values[i] : average + fabsf(values[i]);
    if (format->kind == K_SYMMETRIC)
        return k_search_symmetric(n, -format->low, values, weights, levels);
    return k_search_range(&format->range, n, values, weights, levels, ret_minimum);
}

/* Quantizes the scales by the weights of their sub-blocks; returns false if the block is zero bytes. */
static bool store_weighted_scales(const struct k_format *format, const float *scales, const float *minimums,
                                  const float *weights, uint8_t *block)
{
    uint8_t shares[K_MOST_SUB_BLOCKS];
    if (format->store_shares != NULL) {
        float scale = k_search_symmetric(K_ELEMENTS / format->sub_elements, K_MOST_SHARE, scales, weights, shares);
        format->store_shares(scale, shares, block);
        return true;
    }
    if (format->store_weighted_scales == NULL)
        return format->store_scales(scales, minimums, block);
    format->store_weighted_scales(scales, minimums, weights, block);
    return true;
}

/* Packs the levels under the stored scales; if one is 0, those of the search. */
static void finish_block(const struct k_format *format, const float *values, uint8_t *levels, uint8_t *block)
{
    float scales[K_MOST_SUB_BLOCKS], minimums[K_MOST_SUB_BLOCKS], low = (float)format->low, high = (float)format->high;
    int n = format->sub_elements;
    format->load_scales(block, scales, minimums);
    for (int j = 0; j < K_ELEMENTS / n; j++)
        for (int i = j * n; scales[j] != 0 && i < (j + 1) * n; i++)
            levels[i] = (uint8_t)(k_level((values[i] + minimums[j]) / scales[j], low, high) - low);
    format->pack(levels, block);
}

static void encode_block(const struct k_format *format, const float *values, uint8_t *block)
{
    uint8_t levels[K_ELEMENTS];
    float scales[K_MOST_SUB_BLOCKS] = {0}, minimums[K_MOST_SUB_BLOCKS] = {0};
    int n = format->sub_elements;
    for (int j = 0; j < K_ELEMENTS / n; j++)
        scales[j] = search(format, values + j * n, levels + j * n, &minimums[j]);
    if (format->store_scales(scales, minimums, block))
        finish_block(format, values, levels, block);
    else
        memset(block, 0, format->block_bytes);
}

/* Computes the weights of a block's values from their importance. */
static void weigh(const struct k_format *format, const float *values, const float *importance,
                  float weights[K_ELEMENTS])
{
    if (format->mean_factor == 0)
        memcpy(weights, importance, K_ELEMENTS * sizeof *weights);
    else
        importance_weights(values, importance, format->mean_factor * sum_of_squares(values, K_ELEMENTS) / K_ELEMENTS,
                           K_ELEMENTS, weights);
}

static void encode_weighted_block(const struct k_format *format, const float *values, const float *importance,
                                  uint8_t *block)
{
    uint8_t levels[K_ELEMENTS];
    float weights[K_ELEMENTS], scales[K_MOST_SUB_BLOCKS], minimums[K_MOST_SUB_BLOCKS] = {0},
                                                          sums[K_MOST_SUB_BLOCKS] = {0};
    const struct k_range_search range = K_WEIGHTED_RANGE(format->high);
    int n = format->sub_elements;
    weigh(format, values, importance, weights);
    for (int j = 0, at = 0; j < K_ELEMENTS / n; j++, at += n) {
        for (int i = at; i < at + n; i++)
            sums[j] += weights[i];
        if (format->low == 0)
            scales[j] = k_search_range(&range, n, values + at, weights + at, levels + at, &minimums[j]);
        else
            scales[j] = k_search_symmetric(n, -format->low, values + at, weights + at, levels + at);
    }
    if (store_weighted_scales(format, scales, minimums, sums, block))
        finish_block(format, values, levels, block);
    else
        memset(block, 0, format->block_bytes);
}

void k_encode(const struct k_format *format, const float *values, const float *importance, uint8_t *blocks,
              size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++, values += K_ELEMENTS, blocks += format->block_bytes)
        if (importance != NULL)
            encode_weighted_block(format, values, importance + i * K_ELEMENTS, blocks);
        else
            encode_block(format, values, blocks);
}
