/* Q4_0 by another rule, as some engines quantize at load time: d = amax / 7; the level is x / d, or 0 if d is 0,
 * rounded half away from zero and clamped to -8 .. 7. Blocks have Q4_0's form. */
#include "quant/blocks/block32.h"
#include "quant/blocks/encoding.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/weights.h"

enum { QS = 2, BLOCK_BYTES = 18 };

static void encode_block(const float *values, uint8_t *block)
{
    uint8_t levels[BLOCK32_ELEMENTS];
    float d = fabsf(largest_by_magnitude(values, BLOCK32_ELEMENTS)) / 7;
    for (int i = 0; i < BLOCK32_ELEMENTS; i++) {
        int level = d != 0 ? block32_round(values[i] / d) : 0;
        int capped = level < 7 ? level : 7;
        levels[i] = (uint8_t)(8 + (capped < -8 ? -8 : capped));
    }
    f16_store(block, d);
    block32_pack_nibbles(levels, block + QS);
}

static void encode(const float *values, void *blocks, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++)
        encode_block(values + i * BLOCK32_ELEMENTS, (uint8_t *)blocks + i * BLOCK_BYTES);
}

encode_function q4_0_absmax7_encode_neon, q4_0_absmax7_encode_avx2;

const struct rule q4_0_absmax7_rule = {
    .name = "absmax7",
    .encode[CPU_PORTABLE] = encode,
    .encode[CPU_NEON] = ON_ARM(q4_0_absmax7_encode_neon),
    .encode[CPU_AVX2] = ON_X86(q4_0_absmax7_encode_avx2),
};
