/* Q3_K: 256 values in 110 bytes. Sixteen sub-blocks of 16 with a signed 6-bit scale each, levels of 3 bits.
 * Bytes: hmask[32] (third bits), qs[64], scales[12], F16 d; value = d * (scale - 32) * (level - 4). */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/k_format.h"

#include <math.h>

enum { SUB_BLOCKS = 16, QS = 32, SCALES = 96, D = 108, BLOCK_BYTES = 110 };

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

/* The scales as 6-bit shares of the one of largest magnitude, with their F16 step. */
static bool store_scales(const float *scales, const float *minimums, uint8_t *block)
{
    (void)minimums;
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
    return true;
}

static void load_scales(const uint8_t *block, float *ret_scales, float *ret_minimums)
{
    float d = f16_load(block + D);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        ret_scales[j] = d * (float)unpack_scale(block + SCALES, j);
        ret_minimums[j] = 0;
    }
}

static void pack(const uint8_t *levels, uint8_t *block)
{
    memset(block, 0, QS);
    for (int group = 0; group < 8; group++)
        for (int i = 0; i < 32; i++)
            block[i] |= (uint8_t)((levels[32 * group + i] >> 2) << group);
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 32; i++) {
            const uint8_t *level = levels + 128 * half + i;
            block[QS + 32 * half + i] =
                (uint8_t)((level[0] & 3) | (level[32] & 3) << 2 | (level[64] & 3) << 4 | (level[96] & 3) << 6);
        }
}

static const struct k_format q3_k_format = {
    .kind = K_REFINED,
    .sub_elements = 16,
    .low = -4,
    .high = 3,
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
        const uint8_t *qs = block + QS + j / 8 * 32 + j % 2 * 16, *high = block + j % 2 * 16;
        int shift = j % 8 / 2 * 2, bit = j / 2;
        for (int i = 0; i < 16; i++)
            values[j * 16 + i] = scales[j] * (float)((qs[i] >> shift & 3) + (high[i] >> bit & 1) * 4 - 4);
    }
}

static void q3_k_decode(const void *blocks, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        decode_block((const uint8_t *)blocks + i * BLOCK_BYTES, values + i * K_ELEMENTS);
}

DEFINE_K_ENCODERS(q3_k)

const struct dtype q3_k_dtype = {
    .name = "Q3_K",
    .view_name = "q3_k",
    .kind = DTYPE_BLOCK,
    .block_elements = K_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 11,
    .n_scales = 1,
    .scale_offset = {D},
    .encode_cost = 5000,
    .kernels = K_KERNELS(q3_k),
};
