/* Q6_K: 256 values in 210 bytes. Sixteen sub-blocks of 16 with a signed 8-bit scale each, levels of 6 bits.
 * Bytes: ql[128] (low four bits), qh[64] (upper two), i8 scales[16], F16 d; value = d * scale * (level - 32). */
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/k_format.h"
#include "quant/blocks/weights.h"

enum { SUB_BLOCKS = 16, QH = 128, SCALES = 192, D = 208, BLOCK_BYTES = 210 };

static bool store_scales(const float *scales, const float *minimums, uint8_t *block)
{
    float largest = largest_by_magnitude(scales, SUB_BLOCKS);
    if (fabsf(largest) < K_NEGLIGIBLE)
        return false;
    float inverse = -128.f / largest;
    f16_store(block + D, 1 / inverse);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        int share = nearest_int(inverse * scales[j]);
        block[SCALES + j] = (uint8_t)(int8_t)(share < 127 ? share : 127);
    }
    return true;
}

static void load_scales(const uint8_t *block, float *ret_scales, float *ret_minimums)
{
    float d = f16_load(block + D);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        ret_scales[j] = d * (float)(int8_t)block[SCALES + j];
        ret_minimums[j] = 0;
    }
}

static void pack(const uint8_t *levels, uint8_t *block)
{
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 32; i++) {
            const uint8_t *level = levels + 128 * half + i;
            uint8_t *low = block + 64 * half + i;
            low[0] = (uint8_t)((level[0] & 15) | (level[64] & 15) << 4);
            low[32] = (uint8_t)((level[32] & 15) | (level[96] & 15) << 4);
            block[QH + 32 * half + i] =
                (uint8_t)(level[0] >> 4 | level[32] >> 4 << 2 | level[64] >> 4 << 4 | level[96] >> 4 << 6);
        }
}

static const struct k_format q6_k_format = {
    .kind = K_SYMMETRIC,
    .sub_elements = 16,
    .low = -32,
    .high = 31,
    .block_bytes = BLOCK_BYTES,
    .store_scales = store_scales,
    .load_scales = load_scales,
    .pack = pack,
};

static void decode_block(const uint8_t *block, float *values)
{
    float scales[SUB_BLOCKS], minimums[SUB_BLOCKS];
    load_scales(block, scales, minimums);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        int half = j / 8, quarter = j % 8 / 2, within = j % 2 * 16;
        const uint8_t *low = block + 64 * half + quarter % 2 * 32 + within, *high = block + QH + 32 * half + within;
        int low_shift = quarter / 2 * 4, high_shift = quarter * 2;
        for (int i = 0; i < 16; i++)
            values[j * 16 + i] =
                scales[j] * (float)((low[i] >> low_shift & 15) + (high[i] >> high_shift & 3) * 16 - 32);
    }
}

DEFINE_K_SCALES(q6_k, D, .span = SPAN_MAGNITUDE, .n_sub_blocks = SUB_BLOCKS, .n_steps = 32, .least = 0.55, .most = 1.65)

DEFINE_K_DTYPE(q6_k, "Q6_K", 14, q6_k_decode_neon, q6_k_decode_avx2, .n_scales = 1, .scale_offset = {D},
               .scale_parts = {{SCALES, BLOCK_BYTES - SCALES}}, .encode_cost = 4000)
