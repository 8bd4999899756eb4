/* Q3_K: 256 values in 110 bytes. Sixteen sub-blocks of 16 with a signed 6-bit scale each, levels of 3 bits.
 * Bytes: hmask[32] (third bits), qs[64], scales[12], F16 d; value = d * (scale - 32) * (level - 4). */
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/k_format.h"

#include <math.h>

enum { SUB_BLOCKS = 16, QS = 32, SCALES = 96, D = 108, BLOCK_BYTES = 110 };

/* Packs the scales: the four low bits of each are in the first eight bytes, those of the last eight scales in the upper
 * halves; the two high bits of scale j + 4 * k are in byte 8 + j. Works on eight or four bytes at once. */
static void pack_scales(const uint8_t scales[SUB_BLOCKS], uint8_t packed[12])
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
static float signed_largest(const float *scales)
{
    float above = 0, below = 0;
    for (int j = 0; j < SUB_BLOCKS; j++) {
        above = scales[j] > above ? scales[j] : above;
        below = scales[j] < below ? scales[j] : below;
    }
    for (int j = 0; above == -below && j < SUB_BLOCKS; j++)
        if (fabsf(scales[j]) == above)
            return scales[j];
    return above > -below ? above : below;
}

/* Stores the scales as 6-bit multiples of an F16 step, from the one of largest magnitude. */
static bool store_scales(const float *scales, const float *minimums, uint8_t *block)
{
    uint8_t shares[SUB_BLOCKS];
    float largest = signed_largest(scales);
    if (largest == 0) {
        memset(block + SCALES, 0, BLOCK_BYTES - SCALES);
        return true;
    }
    float inverse = -32.f / largest;
    for (int j = 0; j < SUB_BLOCKS; j++)
        shares[j] = (uint8_t)(clamp_int(nearest_int(inverse * scales[j]), -32, 31) + 32);
    pack_scales(shares, block + SCALES);
    f16_store(block + D, 1 / inverse);
    return true;
}

static float store_shares(float scale, const uint8_t *shares, uint8_t *block)
{
    f16_store(block + D, scale);
    pack_scales(shares, block + SCALES);
    return f16_load(block + D);
}

static void load_scales(const uint8_t *block, float *ret_scales, float *ret_minimums)
{
    const uint8_t *low = block + SCALES, *high = low + 8;
    float d = f16_load(block + D);
    for (int k = 0; k < 4; k++)
        for (int j = 0; j < 4; j++) {
            int share = (low[j + 4 * (k % 2)] >> 4 * (k / 2) & 15) | (high[j] >> 2 * k & 3) << 4;
            ret_scales[4 * k + j] = d * (float)(share - 32);
        }
    for (int j = 0; j < SUB_BLOCKS; j++)
        ret_minimums[j] = 0;
}

static void pack(const uint8_t *levels, uint8_t *block)
{
    uint8_t packed[SCALES];
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
            packed[QS + 32 * half + i] = low;
        }
    memcpy(block, packed, sizeof packed);
}

static const struct k_format q3_k_format = {
    .kind = K_REFINED,
    .sub_elements = 16,
    .low = -4,
    .high = 3,
    .block_bytes = BLOCK_BYTES,
    .mean_factor = 2,
    .store_scales = store_scales,
    .store_shares = store_shares,
    .load_scales = load_scales,
    .pack = pack,
};

static void decode_block(const uint8_t *block, float *values)
{
    float scales[SUB_BLOCKS], minimums[SUB_BLOCKS];
    load_scales(block, scales, minimums);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        const uint8_t *qs = block + QS + j / 8 * 32 + j % 2 * 16, *high = block + j % 2 * 16;
        int shift = j % 8 / 2 * 2, bit = j / 2;
        for (int i = 0; i < 16; i++)
            values[j * 16 + i] = scales[j] * (float)((qs[i] >> shift & 3) + (high[i] >> bit & 1) * 4 - 4);
    }
}

DEFINE_K_SCALES(q3_k, D, .span = SPAN_MAGNITUDE, .n_sub_blocks = SUB_BLOCKS, .n_steps = 4, .least = 0.4, .most = 1.65)

DEFINE_K_DTYPE(q3_k, "Q3_K", 11, NULL, NULL, .n_scales = 1, .scale_offset = {D},
               .scale_parts = {{SCALES, BLOCK_BYTES - SCALES}}, .encode_cost = 5000)
