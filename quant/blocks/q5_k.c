/* Q5_K: 256 values in 176 bytes. Like Q4_K, with a fifth bit for every level. Bytes: F16 d, F16 dmin, scales[12],
 * qh[32], qs[128]; value = d * scale * level - dmin * minimum. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/k_format.h"

enum { QH = 16, QS = 48, BLOCK_BYTES = 176 };

static void pack(const uint8_t *levels, uint8_t *block)
{
    memset(block + QH, 0, 32);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++)
        for (int i = 0; i < 32; i++)
            block[QH + i] |= (uint8_t)(levels[32 * j + i] >> 4 << j);
    for (int group = 0; group < 4; group++)
        for (int i = 0; i < 32; i++)
            block[QS + 32 * group + i] =
                (uint8_t)((levels[64 * group + i] & 15) | (levels[64 * group + 32 + i] & 15) << 4);
}

static const struct k_format q5_k_format = {
    .kind = K_RANGE_AVERAGE,
    .sub_elements = 32,
    .high = 31,
    .block_bytes = BLOCK_BYTES,
    .range = {.n_max = 31, .n_steps = 15, .r_min = -0.5f, .r_delta = 0.1f},
    .mean_factor = 2,
    .store_scales = q45_store_scales,
    .store_weighted_scales = q45_store_weighted_scales,
    .load_scales = q45_load_scales,
    .pack = pack,
};

static void decode_block(const uint8_t *block, float *values)
{
    float scales[Q45_SUB_BLOCKS], minimums[Q45_SUB_BLOCKS];
    q45_load_scales(block, scales, minimums);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        const uint8_t *qs = block + QS + j / 2 * 32;
        int shift = j % 2 * 4;
        for (int i = 0; i < 32; i++)
            values[j * 32 + i] =
                scales[j] * (float)((qs[i] >> shift & 15) + (block[QH + i] >> j & 1) * 16) - minimums[j];
    }
}

DEFINE_K_SCALES(q5_k, Q45_D, .span = SPAN_WITH_ZERO, .n_sub_blocks = Q45_SUB_BLOCKS, .n_steps = 31, .least = 0.55,
                .most = 1.65)

DEFINE_K_DTYPE(q5_k, "Q5_K", 13, q5_k_decode_neon, q5_k_decode_avx2, .n_scales = 2, .scale_offset = {Q45_D, Q45_D_MIN},
               .scale_parts = {{0, QH}}, .encode_cost = 6000)
