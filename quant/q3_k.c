/* Q3_K: 256 values in 110 bytes. Sixteen sub-blocks of 16 with a signed 6-bit scale each, levels of 3 bits.
 * Bytes: hmask[32] (third bits), qs[64], scales[12], F16 d; value = d * (scale - 32) * (level - 4). */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/k_search.h"

#include <math.h>

enum { SUB_BLOCKS = 16, SUB_ELEMENTS = 16, QS = 32, SCALES = 96, D = 108, BLOCK_BYTES = 110 };

static int unpack_scale(const uint8_t *packed, int j)
{
    int low = j < 8 ? packed[j] & 15 : packed[j - 8] >> 4;
    return (low | (packed[8 + j % 4] >> (2 * (j / 4)) & 3) << 4) - 32;
}

static void pack_scale(uint8_t *packed, int j, int scale)
{
    if (j < 8)
        packed[j] = (uint8_t)(scale & 15);
    else
        packed[j - 8] |= (uint8_t)((scale & 15) << 4);
    packed[8 + j % 4] |= (uint8_t)(scale >> 4 << (2 * (j / 4)));
}

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block + D);
    for (int i = 0; i < K_ELEMENTS; i++) {
        int half = i / 128, shift = i % 128 / 32 * 2;
        int level = (block[QS + 32 * half + i % 32] >> shift & 3) - (block[i % 32] >> (i / 32) & 1 ? 0 : 4);
        values[i] = d * (float)unpack_scale(block + SCALES, i / SUB_ELEMENTS) * (float)level;
    }
}

/* The scales as 6-bit shares of the one of largest magnitude, packed, with their F16 step. */
static void quantize_scales(const float *scales, uint8_t *block)
{
    float largest = 0, magnitude = 0;
    for (int j = 0; j < SUB_BLOCKS; j++)
        if (fabsf(scales[j]) > magnitude) {
            magnitude = fabsf(scales[j]);
            largest = scales[j];
        }
    memset(block + SCALES, 0, 12);
    float inverse = largest != 0 ? -32.f / largest : 0;
    for (int j = 0; largest != 0 && j < SUB_BLOCKS; j++)
        pack_scale(block + SCALES, j, clamp_int(nearest_int(inverse * scales[j]), -32, 31) + 32);
    f16_store(block + D, largest != 0 ? 1 / inverse : 0);
}

static void encode_block(const float *values, uint8_t *block)
{
    int8_t levels[K_ELEMENTS];
    float scales[SUB_BLOCKS];
    for (int j = 0; j < SUB_BLOCKS; j++)
        scales[j] = k_search_refined(SUB_ELEMENTS, 4, values + j * SUB_ELEMENTS, levels + j * SUB_ELEMENTS);
    quantize_scales(scales, block);
    float d = f16_load(block + D);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        float scale = d * (float)unpack_scale(block + SCALES, j);
        for (int i = j * SUB_ELEMENTS; scale != 0 && i < (j + 1) * SUB_ELEMENTS; i++)
            levels[i] = (int8_t)(clamp_int(nearest_int(values[i] / scale), -4, 3) + 4);
    }
    memset(block, 0, QS);
    for (int i = 0; i < K_ELEMENTS; i++) {
        block[i % 32] |= (uint8_t)((levels[i] > 3) << (i / 32));
        levels[i] &= 3;
    }
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 32; i++) {
            const int8_t *level = levels + 128 * half + i;
            block[QS + 32 * half + i] = (uint8_t)(level[0] | level[32] << 2 | level[64] << 4 | level[96] << 6);
        }
}

static void q3_k_decode(const void *blocks, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        decode_block((const uint8_t *)blocks + i * BLOCK_BYTES, values + i * K_ELEMENTS);
}

static void q3_k_encode(const float *values, void *blocks, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        encode_block(values + i * K_ELEMENTS, (uint8_t *)blocks + i * BLOCK_BYTES);
}

const struct dtype q3_k_dtype = {
    .name = "Q3_K",
    .view_name = "q3_k",
    .kind = DTYPE_BLOCK,
    .block_elements = K_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 11,
    .n_scales = 1,
    .scale_offset = {D},
    .encode_cost = 10000,
    .kernels[CPU_PORTABLE] = {q3_k_decode, q3_k_encode},
};
