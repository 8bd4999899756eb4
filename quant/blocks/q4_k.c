/* Q4_K: 256 values in 144 bytes. Eight sub-blocks of 32 with a 6-bit scale and minimum each, levels of 4 bits.
 * Bytes: F16 d, F16 dmin, scales[12], qs[128]; value = d * scale * level - dmin * minimum. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/k_format.h"

enum { QS = 16, BLOCK_BYTES = 144 };

static void pack_scale_min(uint8_t packed[12], int index, uint8_t scale, uint8_t minimum)
{
    if (index < 4) {
        packed[index] = scale;
        packed[index + 4] = minimum;
        return;
    }
    packed[index + 4] = (uint8_t)((scale & 15) | (minimum & 15) << 4);
    packed[index - 4] |= (uint8_t)(scale >> 4 << 6);
    packed[index] |= (uint8_t)(minimum >> 4 << 6);
}

static void unpack_scale_min(const uint8_t packed[12], int index, uint8_t *ret_scale, uint8_t *ret_minimum)
{
    if (index < 4) {
        *ret_scale = packed[index] & 63;
        *ret_minimum = packed[index + 4] & 63;
        return;
    }
    *ret_scale = (uint8_t)((packed[index + 4] & 15) | packed[index - 4] >> 6 << 4);
    *ret_minimum = (uint8_t)(packed[index + 4] >> 4 | packed[index] >> 6 << 4);
}

bool q45_store_scales(const float *scales, const float *minimums, uint8_t *block)
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
        pack_scale_min(block + Q45_SCALES, j, scale < 63 ? scale : 63, minimum < 63 ? minimum : 63);
    }
    f16_store(block + Q45_D, largest_scale / 63.f);
    f16_store(block + Q45_D_MIN, largest_minimum / 63.f);
    return true;
}

void q45_store_weighted_scales(const float *scales, const float *minimums, const float *weights, uint8_t *block)
{
    uint8_t scale_shares[Q45_SUB_BLOCKS], minimum_shares[Q45_SUB_BLOCKS];
    f16_store(block + Q45_D, k_search_positive(Q45_SUB_BLOCKS, 63, scales, weights, scale_shares));
    f16_store(block + Q45_D_MIN, k_search_positive(Q45_SUB_BLOCKS, 63, minimums, weights, minimum_shares));
    memset(block + Q45_SCALES, 0, 12);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++)
        pack_scale_min(block + Q45_SCALES, j, scale_shares[j], minimum_shares[j]);
}

void q45_load_scales(const uint8_t *block, float *ret_scales, float *ret_minimums)
{
    float d = f16_load(block + Q45_D), d_min = f16_load(block + Q45_D_MIN);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        uint8_t scale, minimum;
        unpack_scale_min(block + Q45_SCALES, j, &scale, &minimum);
        ret_scales[j] = d * (float)scale;
        ret_minimums[j] = d_min * (float)minimum;
    }
}

static void pack(const uint8_t *levels, uint8_t *block)
{
    for (int group = 0; group < 4; group++)
        for (int i = 0; i < 32; i++)
            block[QS + 32 * group + i] = (uint8_t)(levels[64 * group + i] | levels[64 * group + 32 + i] << 4);
}

static const struct k_format q4_k_format = {
    .kind = K_RANGE_AVERAGE,
    .sub_elements = 32,
    .high = 15,
    .block_bytes = BLOCK_BYTES,
    .range = {.n_max = 15, .n_steps = 20, .r_min = -1.f, .r_delta = 0.1f},
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
            values[j * 32 + i] = scales[j] * (float)(qs[i] >> shift & 15) - minimums[j];
    }
}

DEFINE_K_SCALES(q4_k, Q45_D, .span = SPAN_WITH_ZERO, .n_sub_blocks = Q45_SUB_BLOCKS, .n_steps = 15, .least = 0.55,
                .most = 1.65)

DEFINE_K_DTYPE(q4_k, "Q4_K", 12, q4_k_decode_neon, q4_k_decode_avx2, .n_scales = 2, .scale_offset = {Q45_D, Q45_D_MIN},
               .scale_parts = {{0, QS}}, .encode_cost = 7000)
