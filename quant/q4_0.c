/* Q4_0: 32 values in 18 bytes. F16 d, qs[16]; value = d * (level - 8).
 * d is the value of largest magnitude over -8, so that it maps to level 0 exactly. */
#include "quant/block32.h"
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/k_search.h"
#include "quant/weights.h"

enum { QS = 2, BLOCK_BYTES = 18 };

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        values[i] = (float)(block32_nibble(block + QS, i) - 8) * d;
}

static void encode_block(const float *values, uint8_t *block)
{
    uint8_t levels[BLOCK32_ELEMENTS];
    float d = block32_signed_largest(values) / -8, inverse = block32_inverse(d);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        levels[i] = block32_level(values[i] * inverse + 8.5f, 15);
    f16_store(block, d);
    block32_pack_nibbles(levels, block + QS);
}

static void encode_weighted_block(const float *values, const float *importance, float mean_square, uint8_t *block)
{
    uint8_t levels[BLOCK32_ELEMENTS];
    float weights[BLOCK32_ELEMENTS];
    importance_weights(values, importance, mean_square, BLOCK32_ELEMENTS, weights);
    f16_store(block, k_search_symmetric(BLOCK32_ELEMENTS, 8, values, weights, levels));
    block32_pack_nibbles(levels, block + QS);
}

DEFINE_BLOCK_KERNELS(q4_0, BLOCK32_ELEMENTS, BLOCK_BYTES)
DEFINE_WEIGHTED_KERNEL(q4_0, BLOCK32_ELEMENTS, BLOCK_BYTES)

#if defined(__x86_64__)
decode_function q4_0_decode_avx2;
encode_function q4_0_encode_avx2;
#endif

const struct dtype q4_0_dtype = {
    .name = "Q4_0",
    .view_name = "q4_0",
    .kind = DTYPE_BLOCK,
    .block_elements = BLOCK32_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 2,
    .n_scales = 1,
    .weighs_rows = true,
    .encode_cost = 250,
    .kernels[CPU_PORTABLE] = {q4_0_decode, q4_0_encode, q4_0_encode_weighted},
#if defined(__x86_64__)
    .kernels[CPU_AVX2] = {q4_0_decode_avx2, q4_0_encode_avx2},
#endif
};
