/* Q2_K to Q6_K: 256 values in sub-blocks, whose scales are levels themselves. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/k_format.h"
#include "quant/blocks/weights.h"

#include <math.h>

/* Q2_K: 256 values in 84 bytes. Sixteen sub-blocks of 16 with a 4-bit scale and a 4-bit minimum each, levels of 2 bits.
 * Bytes: scales[16] (scale low, minimum high), qs[64], F16 d, F16 dmin; value = d * scale * level - dmin * minimum. */

enum { Q2_K_SUB_BLOCKS = 16, Q2_K_QS = 16, Q2_K_D = 80, Q2_K_D_MIN = 82, Q2_K_BYTES = 84 };

/* Quantizes to 4-bit multiples of an F16 step, from the largest of `wanted`. */
static void q2_k_quantize_scales(const float *wanted, uint8_t *ret_shares, uint8_t *step)
{
    float largest = 0;
    for (int j = 0; j < Q2_K_SUB_BLOCKS; j++)
        largest = wanted[j] > largest ? wanted[j] : largest;
    float inverse = largest > 0 ? 15.f / largest : 0;
    for (int j = 0; j < Q2_K_SUB_BLOCKS; j++)
        ret_shares[j] = largest > 0 ? (uint8_t)(nearest_int(inverse * wanted[j]) & 15) : 0;
    f16_store(step, largest > 0 ? largest / 15.f : 0);
}

static bool q2_k_store_scales(const float *scales, const float *minimums, uint8_t *block)
{
    uint8_t scale_shares[Q2_K_SUB_BLOCKS], minimum_shares[Q2_K_SUB_BLOCKS];
    q2_k_quantize_scales(scales, scale_shares, block + Q2_K_D);
    q2_k_quantize_scales(minimums, minimum_shares, block + Q2_K_D_MIN);
    for (int j = 0; j < Q2_K_SUB_BLOCKS; j++)
        block[j] = (uint8_t)(scale_shares[j] | minimum_shares[j] << 4);
    return true;
}

static void q2_k_store_weighted_scales(const float *scales, const float *minimums, const float *weights, uint8_t *block)
{
    uint8_t scale_shares[Q2_K_SUB_BLOCKS], minimum_shares[Q2_K_SUB_BLOCKS];
    f16_store(block + Q2_K_D, k_search_positive(Q2_K_SUB_BLOCKS, 15, scales, weights, scale_shares));
    f16_store(block + Q2_K_D_MIN, k_search_positive(Q2_K_SUB_BLOCKS, 15, minimums, weights, minimum_shares));
    for (int j = 0; j < Q2_K_SUB_BLOCKS; j++)
        block[j] = (uint8_t)(scale_shares[j] | minimum_shares[j] << 4);
}

static void q2_k_load_scales(const uint8_t *block, float *ret_scales, float *ret_minimums)
{
    float d = f16_load(block + Q2_K_D), d_min = f16_load(block + Q2_K_D_MIN);
    for (int j = 0; j < Q2_K_SUB_BLOCKS; j++) {
        ret_scales[j] = d * (float)(block[j] & 15);
        ret_minimums[j] = d_min * (float)(block[j] >> 4);
    }
}

static void q2_k_pack(const uint8_t *levels, uint8_t *block)
{
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 32; i++) {
            const uint8_t *level = levels + 128 * half + i;
            block[Q2_K_QS + 32 * half + i] = (uint8_t)(level[0] | level[32] << 2 | level[64] << 4 | level[96] << 6);
        }
}

static const struct k_format q2_k_format = {
    .kind = K_RANGE_MAGNITUDE,
    .sub_elements = 16,
    .high = 3,
    .block_bytes = Q2_K_BYTES,
    .range = {.n_max = 3, .n_steps = 15, .r_min = -0.5f, .r_delta = 0.1f, .absolute = true},
    .mean_factor = 1,
    .store_scales = q2_k_store_scales,
    .store_weighted_scales = q2_k_store_weighted_scales,
    .load_scales = q2_k_load_scales,
    .pack = q2_k_pack,
};

static inline void q2_k_decode_block(const uint8_t *restrict block, float *restrict values)
{
    float scales[Q2_K_SUB_BLOCKS], minimums[Q2_K_SUB_BLOCKS];
    q2_k_load_scales(block, scales, minimums);
    for (int j = 0; j < Q2_K_SUB_BLOCKS; j++) {
        const uint8_t *qs = block + Q2_K_QS + j / 8 * 32 + j % 2 * 16;
        int shift = j % 8 / 2 * 2;
        for (int i = 0; i < 16; i++)
            values[j * 16 + i] = scales[j] * (float)(qs[i] >> shift & 3) - minimums[j];
    }
}

DEFINE_K_SCALES(q2_k, Q2_K_D, .span = SPAN_WITH_ZERO, .n_sub_blocks = Q2_K_SUB_BLOCKS, .n_steps = 3, .least = 0.1,
                .most = 2.5)

DEFINE_K_DTYPE(q2_k, "Q2_K", 10, Q2_K_BYTES, NULL, NULL, .n_scales = 2, .scale_offset = {Q2_K_D, Q2_K_D_MIN},
               .scale_parts = {{0, Q2_K_QS}, {Q2_K_D, 4}}, .encode_cost = 5000)

/* Q3_K: 256 values in 110 bytes. Sixteen sub-blocks of 16 with a signed 6-bit scale each, levels of 3 bits.
 * Bytes: hmask[32] (third bits), qs[64], scales[12], F16 d; value = d * (scale - 32) * (level - 4). */

enum { Q3_K_SUB_BLOCKS = 16, Q3_K_QS = 32, Q3_K_SCALES = 96, Q3_K_D = 108, Q3_K_BYTES = 110 };

/* Packs the scales: the four low bits of each are in the first eight bytes, those of the last eight scales in the upper
 * halves; the two high bits of scale j + 4 * k are in byte 8 + j. Works on eight or four bytes at once. */
static void q3_k_pack_scales(const uint8_t scales[Q3_K_SUB_BLOCKS], uint8_t packed[12])
{
    uint64_t halves[2], low, low_bits = 0x0f0f0f0f0f0f0f0f;
    uint32_t quarters[4], high = 0, high_bits = 0x03030303;
    memcpy(halves, scales, sizeof halves);
    memcpy(quarters, scales, sizeof quarters);
    low = (halves[0] & low_bits) | (halves[1] & low_bits) << 4;
    for (int k = 0; k < 4; k++)
        high |= (quarters[k] >> 4 & high_bits) << 2 * k;
    memcpy(packed, &low, sizeof low);
    memcpy(packed + 8, &high, sizeof high);
}

/* Returns the scale of the largest magnitude, the first of equals, without a branch, which would be unpredictable. */
static float q3_k_signed_largest(const float *scales)
{
    float above = 0, below = 0;
    for (int j = 0; j < Q3_K_SUB_BLOCKS; j++) {
        above = scales[j] > above ? scales[j] : above;
        below = scales[j] < below ? scales[j] : below;
    }
    for (int j = 0; above == -below && j < Q3_K_SUB_BLOCKS; j++)
        if (fabsf(scales[j]) == above)
            return scales[j];
    return above > -below ? above : below;
}

/* Stores the scales as 6-bit multiples of an F16 step, from the one of largest magnitude. */
static bool q3_k_store_scales(const float *scales, const float *minimums, uint8_t *block)
{
    uint8_t shares[Q3_K_SUB_BLOCKS];
    float largest = q3_k_signed_largest(scales);
    if (largest == 0) {
        memset(block + Q3_K_SCALES, 0, Q3_K_BYTES - Q3_K_SCALES);
        return true;
    }
    float inverse = -32.f / largest;
    for (int j = 0; j < Q3_K_SUB_BLOCKS; j++)
        shares[j] = (uint8_t)(clamp_int(nearest_int(inverse * scales[j]), -32, 31) + 32);
    q3_k_pack_scales(shares, block + Q3_K_SCALES);
    f16_store(block + Q3_K_D, 1 / inverse);
    return true;
}

static float q3_k_store_shares(float scale, const uint8_t *shares, uint8_t *block)
{
    f16_store(block + Q3_K_D, scale);
    q3_k_pack_scales(shares, block + Q3_K_SCALES);
    return f16_load(block + Q3_K_D);
}

static void q3_k_load_scales(const uint8_t *block, float *ret_scales, float *ret_minimums)
{
    const uint8_t *low = block + Q3_K_SCALES, *high = low + 8;
    float d = f16_load(block + Q3_K_D);
    for (int k = 0; k < 4; k++)
        for (int j = 0; j < 4; j++) {
            int share = (low[j + 4 * (k % 2)] >> 4 * (k / 2) & 15) | (high[j] >> 2 * k & 3) << 4;
            ret_scales[4 * k + j] = d * (float)(share - 32);
        }
    for (int j = 0; j < Q3_K_SUB_BLOCKS; j++)
        ret_minimums[j] = 0;
}

static void q3_k_pack(const uint8_t *levels, uint8_t *block)
{
    uint8_t packed[Q3_K_SCALES];
    for (int i = 0; i < 32; i++) {
        uint8_t high = 0;
        for (int group = 7; group >= 0; group--)
            high = (uint8_t)(high * 2 + (levels[32 * group + i] >> 2));
        packed[i] = high;
    }
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 32; i++) {
            uint8_t low = 0;
            for (int quarter = 3; quarter >= 0; quarter--)
                low = (uint8_t)(low * 4 + (levels[128 * half + 32 * quarter + i] & 3));
            packed[Q3_K_QS + 32 * half + i] = low;
        }
    memcpy(block, packed, sizeof packed);
}

static const struct k_format q3_k_format = {
    .kind = K_REFINED,
    .sub_elements = 16,
    .low = -4,
    .high = 3,
    .block_bytes = Q3_K_BYTES,
    .mean_factor = 2,
    .store_scales = q3_k_store_scales,
    .store_shares = q3_k_store_shares,
    .load_scales = q3_k_load_scales,
    .pack = q3_k_pack,
};

static void q3_k_decode_block(const uint8_t *block, float *values)
{
    float scales[Q3_K_SUB_BLOCKS], minimums[Q3_K_SUB_BLOCKS];
    q3_k_load_scales(block, scales, minimums);
    for (int j = 0; j < Q3_K_SUB_BLOCKS; j++) {
        const uint8_t *qs = block + Q3_K_QS + j / 8 * 32 + j % 2 * 16, *high = block + j % 2 * 16;
        int shift = j % 8 / 2 * 2, bit = j / 2;
        for (int i = 0; i < 16; i++)
            values[j * 16 + i] = scales[j] * (float)((qs[i] >> shift & 3) + (high[i] >> bit & 1) * 4 - 4);
    }
}

DEFINE_K_SCALES(q3_k, Q3_K_D, .span = SPAN_MAGNITUDE, .n_sub_blocks = Q3_K_SUB_BLOCKS, .n_steps = 4, .least = 0.4,
                .most = 1.65)

DEFINE_K_DTYPE(q3_k, "Q3_K", 11, Q3_K_BYTES, NULL, NULL, .n_scales = 1, .scale_offset = {Q3_K_D},
               .scale_parts = {{Q3_K_SCALES, Q3_K_BYTES - Q3_K_SCALES}}, .encode_cost = 5000)

/* Q4_K: 256 values in 144 bytes. Eight sub-blocks of 32 with a 6-bit scale and minimum each, levels of 4 bits.
 * Bytes: F16 d, F16 dmin, scales[12], qs[128]; value = d * scale * level - dmin * minimum. */

enum { Q4_K_QS = 16, Q4_K_BYTES = 144 };

static void q45_pack_scale_min(uint8_t packed[12], int index, uint8_t scale, uint8_t minimum)
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

static void q45_unpack_scale_min(const uint8_t packed[12], int index, uint8_t *ret_scale, uint8_t *ret_minimum)
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
        q45_pack_scale_min(block + Q45_SCALES, j, scale < 63 ? scale : 63, minimum < 63 ? minimum : 63);
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
        q45_pack_scale_min(block + Q45_SCALES, j, scale_shares[j], minimum_shares[j]);
}

void q45_load_scales(const uint8_t *block, float *ret_scales, float *ret_minimums)
{
    float d = f16_load(block + Q45_D), d_min = f16_load(block + Q45_D_MIN);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        uint8_t scale, minimum;
        q45_unpack_scale_min(block + Q45_SCALES, j, &scale, &minimum);
        ret_scales[j] = d * (float)scale;
        ret_minimums[j] = d_min * (float)minimum;
    }
}

static void q4_k_pack(const uint8_t *levels, uint8_t *block)
{
    for (int group = 0; group < 4; group++)
        for (int i = 0; i < 32; i++)
            block[Q4_K_QS + 32 * group + i] = (uint8_t)(levels[64 * group + i] | levels[64 * group + 32 + i] << 4);
}

static const struct k_format q4_k_format = {
    .kind = K_RANGE_AVERAGE,
    .sub_elements = 32,
    .high = 15,
    .block_bytes = Q4_K_BYTES,
    .range = {.n_max = 15, .n_steps = 20, .r_min = -1.f, .r_delta = 0.1f},
    .mean_factor = 2,
    .store_scales = q45_store_scales,
    .store_weighted_scales = q45_store_weighted_scales,
    .load_scales = q45_load_scales,
    .pack = q4_k_pack,
};

static void q4_k_decode_block(const uint8_t *block, float *values)
{
    float scales[Q45_SUB_BLOCKS], minimums[Q45_SUB_BLOCKS];
    q45_load_scales(block, scales, minimums);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        const uint8_t *qs = block + Q4_K_QS + j / 2 * 32;
        int shift = j % 2 * 4;
        for (int i = 0; i < 32; i++)
            values[j * 32 + i] = scales[j] * (float)(qs[i] >> shift & 15) - minimums[j];
    }
}

DEFINE_K_SCALES(q4_k, Q45_D, .span = SPAN_WITH_ZERO, .n_sub_blocks = Q45_SUB_BLOCKS, .n_steps = 15, .least = 0.55,
                .most = 1.65)

DEFINE_K_DTYPE(q4_k, "Q4_K", 12, Q4_K_BYTES, q4_k_decode_neon, q4_k_decode_avx2, .n_scales = 2,
               .scale_offset = {Q45_D, Q45_D_MIN}, .scale_parts = {{0, Q4_K_QS}}, .encode_cost = 7000)

/* Q5_K: 256 values in 176 bytes. Like Q4_K, with a fifth bit for every level. Bytes: F16 d, F16 dmin, scales[12],
 * qh[32], qs[128]; value = d * scale * level - dmin * minimum. */

enum { Q5_K_QH = 16, Q5_K_QS = 48, Q5_K_BYTES = 176 };

static void q5_k_pack(const uint8_t *levels, uint8_t *block)
{
    memset(block + Q5_K_QH, 0, 32);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++)
        for (int i = 0; i < 32; i++)
            block[Q5_K_QH + i] |= (uint8_t)(levels[32 * j + i] >> 4 << j);
    for (int group = 0; group < 4; group++)
        for (int i = 0; i < 32; i++)
            block[Q5_K_QS + 32 * group + i] =
                (uint8_t)((levels[64 * group + i] & 15) | (levels[64 * group + 32 + i] & 15) << 4);
}

static const struct k_format q5_k_format = {
    .kind = K_RANGE_AVERAGE,
    .sub_elements = 32,
    .high = 31,
    .block_bytes = Q5_K_BYTES,
    .range = {.n_max = 31, .n_steps = 15, .r_min = -0.5f, .r_delta = 0.1f},
    .mean_factor = 2,
    .store_scales = q45_store_scales,
    .store_weighted_scales = q45_store_weighted_scales,
    .load_scales = q45_load_scales,
    .pack = q5_k_pack,
};

static void q5_k_decode_block(const uint8_t *block, float *values)
{
    float scales[Q45_SUB_BLOCKS], minimums[Q45_SUB_BLOCKS];
    q45_load_scales(block, scales, minimums);
    for (int j = 0; j < Q45_SUB_BLOCKS; j++) {
        const uint8_t *qs = block + Q5_K_QS + j / 2 * 32;
        int shift = j % 2 * 4;
        for (int i = 0; i < 32; i++)
            values[j * 32 + i] =
                scales[j] * (float)((qs[i] >> shift & 15) + (block[Q5_K_QH + i] >> j & 1) * 16) - minimums[j];
    }
}

DEFINE_K_SCALES(q5_k, Q45_D, .span = SPAN_WITH_ZERO, .n_sub_blocks = Q45_SUB_BLOCKS, .n_steps = 31, .least = 0.55,
                .most = 1.65)

DEFINE_K_DTYPE(q5_k, "Q5_K", 13, Q5_K_BYTES, q5_k_decode_neon, q5_k_decode_avx2, .n_scales = 2,
               .scale_offset = {Q45_D, Q45_D_MIN}, .scale_parts = {{0, Q5_K_QH}}, .encode_cost = 6000)

/* Q6_K: 256 values in 210 bytes. Sixteen sub-blocks of 16 with a signed 8-bit scale each, levels of 6 bits.
 * Bytes: ql[128] (low four bits), qh[64] (upper two), i8 scales[16], F16 d; value = d * scale * (level - 32). */

enum { Q6_K_SUB_BLOCKS = 16, Q6_K_QH = 128, Q6_K_SCALES = 192, Q6_K_D = 208, Q6_K_BYTES = 210 };

static bool q6_k_store_scales(const float *scales, const float *minimums, uint8_t *block)
{
    float largest = largest_by_magnitude(scales, Q6_K_SUB_BLOCKS);
    if (fabsf(largest) < K_NEGLIGIBLE)
        return false;
    float inverse = -128.f / largest;
    f16_store(block + Q6_K_D, 1 / inverse);
    for (int j = 0; j < Q6_K_SUB_BLOCKS; j++) {
        int share = nearest_int(inverse * scales[j]);
        block[Q6_K_SCALES + j] = (uint8_t)(int8_t)(share < 127 ? share : 127);
    }
    return true;
}

static void q6_k_load_scales(const uint8_t *block, float *ret_scales, float *ret_minimums)
{
    float d = f16_load(block + Q6_K_D);
    for (int j = 0; j < Q6_K_SUB_BLOCKS; j++) {
        ret_scales[j] = d * (float)(int8_t)block[Q6_K_SCALES + j];
        ret_minimums[j] = 0;
    }
}

static void q6_k_pack(const uint8_t *levels, uint8_t *block)
{
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 32; i++) {
            const uint8_t *level = levels + 128 * half + i;
            uint8_t *low = block + 64 * half + i;
            low[0] = (uint8_t)((level[0] & 15) | (level[64] & 15) << 4);
            low[32] = (uint8_t)((level[32] & 15) | (level[96] & 15) << 4);
            block[Q6_K_QH + 32 * half + i] =
                (uint8_t)(level[0] >> 4 | level[32] >> 4 << 2 | level[64] >> 4 << 4 | level[96] >> 4 << 6);
        }
}

static const struct k_format q6_k_format = {
    .kind = K_SYMMETRIC,
    .sub_elements = 16,
    .low = -32,
    .high = 31,
    .block_bytes = Q6_K_BYTES,
    .store_scales = q6_k_store_scales,
    .load_scales = q6_k_load_scales,
    .pack = q6_k_pack,
};

static void q6_k_decode_block(const uint8_t *block, float *values)
{
    float scales[Q6_K_SUB_BLOCKS], minimums[Q6_K_SUB_BLOCKS];
    q6_k_load_scales(block, scales, minimums);
    for (int j = 0; j < Q6_K_SUB_BLOCKS; j++) {
        int half = j / 8, quarter = j % 8 / 2, within = j % 2 * 16;
        const uint8_t *low = block + 64 * half + quarter % 2 * 32 + within,
                      *high = block + Q6_K_QH + 32 * half + within;
        int low_shift = quarter / 2 * 4, high_shift = quarter * 2;
        for (int i = 0; i < 16; i++)
            values[j * 16 + i] =
                scales[j] * (float)((low[i] >> low_shift & 15) + (high[i] >> high_shift & 3) * 16 - 32);
    }
}

DEFINE_K_SCALES(q6_k, Q6_K_D, .span = SPAN_MAGNITUDE, .n_sub_blocks = Q6_K_SUB_BLOCKS, .n_steps = 32, .least = 0.55,
                .most = 1.65)

DEFINE_K_DTYPE(q6_k, "Q6_K", 14, Q6_K_BYTES, q6_k_decode_neon, q6_k_decode_avx2, .n_scales = 1,
               .scale_offset = {Q6_K_D}, .scale_parts = {{Q6_K_SCALES, Q6_K_BYTES - Q6_K_SCALES}}, .encode_cost = 4000)
