/* Q2_K: 256 values in 84 bytes. Sixteen sub-blocks of 16 with a 4-bit scale and a 4-bit minimum each, levels of 2 bits.
 * Bytes: scales[16] (scale low, minimum high), qs[64], F16 d, F16 dmin; value = d * scale * level - dmin * minimum. */
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/k_format.h"

enum { SUB_BLOCKS = 16, QS = 16, D = 80, D_MIN = 82, BLOCK_BYTES = 84 };

/* Quantizes to 4-bit multiples of an F16 step, from the largest of `wanted`. */
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

static bool store_scales(const float *scales, const float *minimums, uint8_t *block)
{
    uint8_t scale_shares[SUB_BLOCKS], minimum_shares[SUB_BLOCKS];
    quantize_scales(scales, scale_shares, block + D);
    quantize_scales(minimums, minimum_shares, block + D_MIN);
    for (int j = 0; j < SUB_BLOCKS; j++)
        block[j] = (uint8_t)(scale_shares[j] | minimum_shares[j] << 4);
    return true;
}

static void store_weighted_scales(const float *scales, const float *minimums, const float *weights, uint8_t *block)
{
    uint8_t scale_shares[SUB_BLOCKS], minimum_shares[SUB_BLOCKS];
    f16_store(block + D, k_search_positive(SUB_BLOCKS, 15, scales, weights, scale_shares));
    f16_store(block + D_MIN, k_search_positive(SUB_BLOCKS, 15, minimums, weights, minimum_shares));
    for (int j = 0; j < SUB_BLOCKS; j++)
        block[j] = (uint8_t)(scale_shares[j] | minimum_shares[j] << 4);
}

static void load_scales(const uint8_t *block, float *ret_scales, float *ret_minimums)
{
    float d = f16_load(block + D), d_min = f16_load(block + D_MIN);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        ret_scales[j] = d * (float)(block[j] & 15);
        ret_minimums[j] = d_min * (float)(block[j] >> 4);
    }
}

static void pack(const uint8_t *levels, uint8_t *block)
{
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 32; i++) {
            const uint8_t *level = levels + 128 * half + i;
            block[QS + 32 * half + i] = (uint8_t)(level[0] | level[32] << 2 | level[64] << 4 | level[96] << 6);
        }
}

static const struct k_format q2_k_format = {
    .kind = K_RANGE_MAGNITUDE,
    .sub_elements = 16,
    .high = 3,
    .block_bytes = BLOCK_BYTES,
    .range = {.n_max = 3, .n_steps = 15, .r_min = -0.5f, .r_delta = 0.1f, .absolute = true},
    .mean_factor = 1,
    .store_scales = store_scales,
    .store_weighted_scales = store_weighted_scales,
    .load_scales = load_scales,
    .pack = pack,
};

static inline void decode_block(const uint8_t *restrict block, float *restrict values)
{
    float scales[SUB_BLOCKS], minimums[SUB_BLOCKS];
    load_scales(block, scales, minimums);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        const uint8_t *qs = block + QS + j / 8 * 32 + j % 2 * 16;
        int shift = j % 8 / 2 * 2;
        for (int i = 0; i < 16; i++)
            values[j * 16 + i] = scales[j] * (float)(qs[i] >> shift & 3) - minimums[j];
    }
}

DEFINE_K_SCALES(q2_k, D, .span = SPAN_WITH_ZERO, .n_sub_blocks = SUB_BLOCKS, .n_steps = 3, .least = 0.1, .most = 2.5)

DEFINE_K_DTYPE(q2_k, "Q2_K", 10, NULL, NULL, .n_scales = 2, .scale_offset = {D, D_MIN},
               .scale_parts = {{0, QS}, {D, 4}}, .encode_cost = 5000)
