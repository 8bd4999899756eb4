/* Q2_K: 256 values in 84 bytes. Sixteen sub-blocks of 16 with a 4-bit scale and a 4-bit minimum each, levels of 2 bits.
 * Bytes: scales[16] (scale low, minimum high), qs[64], F16 d, F16 dmin; value = d * scale * level - dmin * minimum. */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/k_search.h"

#include <math.h>

enum { SUB_BLOCKS = 16, SUB_ELEMENTS = 16, QS = 16, D = 80, D_MIN = 82, BLOCK_BYTES = 84 };

static const struct k_range_search search = {.n_max = 3, .n_steps = 15, .r_min = -0.5f, .r_delta = 0.1f, .absolute = true};

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block + D), d_min = f16_load(block + D_MIN);
    for (int i = 0; i < K_ELEMENTS; i++) {
        int half = i / 128, shift = i % 128 / 32 * 2, byte = QS + 32 * half + i % 32;
        uint8_t scale = block[i / SUB_ELEMENTS];
        values[i] = d * (float)(scale & 15) * (float)(block[byte] >> shift & 3) - d_min * (float)(scale >> 4);
    }
}

/* 4-bit shares of the largest in `wanted`, and the F16 step that they count. */
static void quantize_scales(const float *wanted, uint8_t *ret_shares, uint8_t *step)
{
    float largest = 0;
    for (int j = 0; j < SUB_BLOCKS; j++)
        largest = wanted[j] > largest ? wanted[j] : largest;
    float inverse = largest > 0 ? 15.f / largest : 0;
    for (int j = 0; j < SUB_BLOCKS; j++)
        ret_shares[j] = largest > 0 ? (uint8_t)(nearest_int(inverse * wanted[j]) & 15) : 0;
    f16_store(step, largest > 0 ? largest / 15.f : 0);
}

static void encode_block(const float *values, uint8_t *block)
{
    uint8_t levels[K_ELEMENTS], scale_shares[SUB_BLOCKS], minimum_shares[SUB_BLOCKS];
    float scales[SUB_BLOCKS], minimums[SUB_BLOCKS], weights[SUB_ELEMENTS];
    for (int j = 0; j < SUB_BLOCKS; j++) {
        const float *sub = values + j * SUB_ELEMENTS;
        for (int i = 0; i < SUB_ELEMENTS; i++)
            weights[i] = fabsf(sub[i]);
        scales[j] = k_search_range(&search, SUB_ELEMENTS, sub, weights, levels + j * SUB_ELEMENTS, &minimums[j]);
    }
    quantize_scales(scales, scale_shares, block + D);
    quantize_scales(minimums, minimum_shares, block + D_MIN);
    float d = f16_load(block + D), d_min = f16_load(block + D_MIN);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        block[j] = (uint8_t)(scale_shares[j] | minimum_shares[j] << 4);
        float scale = d * (float)scale_shares[j], minimum = d_min * (float)minimum_shares[j];
        for (int i = j * SUB_ELEMENTS; scale != 0 && i < (j + 1) * SUB_ELEMENTS; i++)
            levels[i] = (uint8_t)clamp_int(nearest_int((values[i] + minimum) / scale), 0, 3);
    }
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 32; i++) {
            const uint8_t *level = levels + 128 * half + i;
            block[QS + 32 * half + i] = (uint8_t)(level[0] | level[32] << 2 | level[64] << 4 | level[96] << 6);
        }
}

static void q2_k_decode(const void *blocks, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        decode_block((const uint8_t *)blocks + i * BLOCK_BYTES, values + i * K_ELEMENTS);
}

static void q2_k_encode(const float *values, void *blocks, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        encode_block(values + i * K_ELEMENTS, (uint8_t *)blocks + i * BLOCK_BYTES);
}

const struct dtype q2_k_dtype = {
    .name = "Q2_K",
    .view_name = "q2_k",
    .kind = DTYPE_BLOCK,
    .block_elements = K_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 10,
    .n_scales = 2,
    .scale_offset = {D, D_MIN},
    .encode_cost = 20000,
    .kernels[CPU_PORTABLE] = {q2_k_decode, q2_k_encode},
};
