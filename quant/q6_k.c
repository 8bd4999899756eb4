/* Q6_K: 256 values in 210 bytes. Sixteen sub-blocks of 16 with a signed 8-bit scale each, levels of 6 bits.
 * Bytes: ql[128] (low four bits), qh[64] (upper two), i8 scales[16], F16 d; value = d * scale * (level - 32). */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/k_search.h"

#include <math.h>

enum { SUB_BLOCKS = 16, SUB_ELEMENTS = 16, QL = 0, QH = 128, SCALES = 192, D = 208, BLOCK_BYTES = 210 };

static void pack_levels(const int8_t *levels, uint8_t *block)
{
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 32; i++) {
            const int8_t *level = levels + 128 * half + i;
            uint8_t *low = block + QL + 64 * half + i;
            low[0] = (uint8_t)((level[0] & 15) | (level[64] & 15) << 4);
            low[32] = (uint8_t)((level[32] & 15) | (level[96] & 15) << 4);
            block[QH + 32 * half + i] =
                (uint8_t)(level[0] >> 4 | level[32] >> 4 << 2 | level[64] >> 4 << 4 | level[96] >> 4 << 6);
        }
}

static void encode_block(const float *values, uint8_t *block)
{
    int8_t levels[K_ELEMENTS];
    float scales[SUB_BLOCKS], largest = 0, magnitude = 0;
    for (int j = 0; j < SUB_BLOCKS; j++) {
        scales[j] = k_search_symmetric(SUB_ELEMENTS, 32, values + j * SUB_ELEMENTS, levels + j * SUB_ELEMENTS);
        if (fabsf(scales[j]) > magnitude) {
            magnitude = fabsf(scales[j]);
            largest = scales[j];
        }
    }
    if (magnitude < K_NEGLIGIBLE) {
        memset(block, 0, BLOCK_BYTES);
        return;
    }
    float inverse = -128.f / largest;
    f16_store(block + D, 1 / inverse);
    float d = f16_load(block + D);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        int share = nearest_int(inverse * scales[j]);
        int8_t stored = (int8_t)(share < 127 ? share : 127);
        block[SCALES + j] = (uint8_t)stored;
        float scale = d * (float)stored;
        for (int i = j * SUB_ELEMENTS; scale != 0 && i < (j + 1) * SUB_ELEMENTS; i++)
            levels[i] = (int8_t)(clamp_int(nearest_int(values[i] / scale), -32, 31) + 32);
    }
    pack_levels(levels, block);
}

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block + D);
    for (int i = 0; i < K_ELEMENTS; i++) {
        int half = i / 128, quarter = i % 128 / 32;
        uint8_t low = block[QL + 64 * half + quarter % 2 * 32 + i % 32];
        int level = (quarter < 2 ? low & 15 : low >> 4) | (block[QH + 32 * half + i % 32] >> (2 * quarter) & 3) << 4;
        values[i] = d * (float)(int8_t)block[SCALES + i / SUB_ELEMENTS] * (float)(level - 32);
    }
}

static void q6_k_decode(const void *blocks, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        decode_block((const uint8_t *)blocks + i * BLOCK_BYTES, values + i * K_ELEMENTS);
}

static void q6_k_encode(const float *values, void *blocks, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        encode_block(values + i * K_ELEMENTS, (uint8_t *)blocks + i * BLOCK_BYTES);
}

const struct dtype q6_k_dtype = {
    .name = "Q6_K",
    .view_name = "q6_k",
    .kind = DTYPE_BLOCK,
    .block_elements = K_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 14,
    .n_scales = 1,
    .scale_offset = {D},
    .encode_cost = 20000,
    .kernels[CPU_PORTABLE] = {q6_k_decode, q6_k_encode},
};
