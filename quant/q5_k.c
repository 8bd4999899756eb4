/* Q5_K: 256 values in 176 bytes. As Q4_K, with a fifth bit for every level.
 * Bytes: F16 d, F16 dmin, scales[12], qh[32], qs[128]; value = d * scale * level - dmin * minimum. */
#include "quant/dtype.h"
#include "quant/q4_q5_k.h"

enum { QH = 16, QS = 48, BLOCK_BYTES = 176 };

static const struct k_range_search search = {.n_max = 31, .n_steps = 15, .r_min = -0.5f, .r_delta = 0.1f};

static void encode_block(const float *values, uint8_t *block)
{
    uint8_t levels[K_ELEMENTS];
    q45_quantize(&search, values, block, levels);
    memset(block + QH, 0, 32);
    for (int i = 0; i < K_ELEMENTS; i++)
        block[QH + i % 32] |= (uint8_t)(levels[i] >> 4 << (i / 32));
    for (int i = 0; i < K_ELEMENTS / 2; i++) {
        const uint8_t *level = levels + i / 32 * 64 + i % 32;
        block[QS + i] = (uint8_t)((level[0] & 15) | (level[32] & 15) << 4);
    }
}

static void decode_block(const uint8_t *block, float *values)
{
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        float scale, minimum;
        q45_scale(block, j, &scale, &minimum);
        const uint8_t *qs = block + QS + j / 2 * 32;
        for (int i = 0; i < Q45_SUB_ELEMENTS; i++) {
            int level = (j % 2 ? qs[i] >> 4 : qs[i] & 15) | (block[QH + i] >> j & 1) << 4;
            values[j * Q45_SUB_ELEMENTS + i] = scale * (float)level - minimum;
        }
    }
}

static void q5_k_decode(const void *blocks, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        decode_block((const uint8_t *)blocks + i * BLOCK_BYTES, values + i * K_ELEMENTS);
}

static void q5_k_encode(const float *values, void *blocks, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        encode_block(values + i * K_ELEMENTS, (uint8_t *)blocks + i * BLOCK_BYTES);
}

const struct dtype q5_k_dtype = {
    .name = "Q5_K",
    .view_name = "q5_k",
    .kind = DTYPE_BLOCK,
    .block_elements = K_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 13,
    .n_scales = 2,
    .scale_offset = {Q45_D, Q45_D_MIN},
    .encode_cost = 30000,
    .kernels[CPU_PORTABLE] = {q5_k_decode, q5_k_encode},
};
