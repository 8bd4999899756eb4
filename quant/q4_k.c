/* Q4_K: 256 values in 144 bytes. Eight sub-blocks of 32 with a 6-bit scale and minimum each, levels of 4 bits.
 * Bytes: F16 d, F16 dmin, scales[12], qs[128]; value = d * scale * level - dmin * minimum. */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/q4_q5_k.h"

#include <math.h>

enum { QS = 16, BLOCK_BYTES = 144 };

static const struct k_range_search search = {.n_max = 15, .n_steps = 20, .r_min = -1.f, .r_delta = 0.1f};

void q45_scale(const uint8_t *block, int index, float *ret_scale, float *ret_minimum)
{
    uint8_t scale, minimum;
    k_unpack_scale_min(block + Q45_SCALES, index, &scale, &minimum);
    *ret_scale = f16_load(block + Q45_D) * (float)scale;
    *ret_minimum = f16_load(block + Q45_D_MIN) * (float)minimum;
}

static void quantize_scales(const float *scales, const float *minimums, uint8_t *block)
{
    float largest_scale = 0, largest_minimum = 0;
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        largest_scale = scales[j] > largest_scale ? scales[j] : largest_scale;
        largest_minimum = minimums[j] > largest_minimum ? minimums[j] : largest_minimum;
    }
    float inverse_scale = largest_scale > 0 ? 63.f / largest_scale : 0;
    float inverse_minimum = largest_minimum > 0 ? 63.f / largest_minimum : 0;
    memset(block + Q45_SCALES, 0, 12);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        uint8_t scale = (uint8_t)nearest_int(inverse_scale * scales[j]);
        uint8_t minimum = (uint8_t)nearest_int(inverse_minimum * minimums[j]);
        k_pack_scale_min(block + Q45_SCALES, j, scale < 63 ? scale : 63, minimum < 63 ? minimum : 63);
    }
    f16_store(block + Q45_D, largest_scale / 63.f);
    f16_store(block + Q45_D_MIN, largest_minimum / 63.f);
}

void q45_quantize(const struct k_range_search *range, const float *values, uint8_t *block, uint8_t levels[K_ELEMENTS])
{
    float scales[Q45_SUB_BLOCKS], minimums[Q45_SUB_BLOCKS], weights[Q45_SUB_ELEMENTS];
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        const float *sub = values + j * Q45_SUB_ELEMENTS;
        float squares = 0;
        for (int i = 0; i < Q45_SUB_ELEMENTS; i++)
            squares += sub[i] * sub[i];
        float average = sqrtf(squares / Q45_SUB_ELEMENTS);
        for (int i = 0; i < Q45_SUB_ELEMENTS; i++)
            weights[i] = average + fabsf(sub[i]);
        scales[j] = k_search_range(range, Q45_SUB_ELEMENTS, sub, weights, levels + j * Q45_SUB_ELEMENTS, &minimums[j]);
    }
    quantize_scales(scales, minimums, block);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        float scale, minimum;
        q45_scale(block, j, &scale, &minimum);
        for (int i = j * Q45_SUB_ELEMENTS; scale != 0 && i < (j + 1) * Q45_SUB_ELEMENTS; i++)
            levels[i] = (uint8_t)clamp_int(nearest_int((values[i] + minimum) / scale), 0, range->n_max);
    }
}

static void encode_block(const float *values, uint8_t *block)
{
    uint8_t levels[K_ELEMENTS];
    q45_quantize(&search, values, block, levels);
    for (int i = 0; i < K_ELEMENTS / 2; i++) {
        const uint8_t *level = levels + i / 32 * 64 + i % 32;
        block[QS + i] = (uint8_t)(level[0] | level[32] << 4);
    }
}

static void decode_block(const uint8_t *block, float *values)
{
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        float scale, minimum;
        q45_scale(block, j, &scale, &minimum);
        const uint8_t *qs = block + QS + j / 2 * 32;
        for (int i = 0; i < Q45_SUB_ELEMENTS; i++)
            values[j * Q45_SUB_ELEMENTS + i] = scale * (float)(j % 2 ? qs[i] >> 4 : qs[i] & 15) - minimum;
    }
}

static void q4_k_decode(const void *blocks, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        decode_block((const uint8_t *)blocks + i * BLOCK_BYTES, values + i * K_ELEMENTS);
}

static void q4_k_encode(const float *values, void *blocks, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        encode_block(values + i * K_ELEMENTS, (uint8_t *)blocks + i * BLOCK_BYTES);
}

const struct dtype q4_k_dtype = {
    .name = "Q4_K",
    .view_name = "q4_k",
    .kind = DTYPE_BLOCK,
    .block_elements = K_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 12,
    .n_scales = 2,
    .scale_offset = {Q45_D, Q45_D_MIN},
    .encode_cost = 30000,
    .kernels[CPU_PORTABLE] = {q4_k_decode, q4_k_encode},
};
