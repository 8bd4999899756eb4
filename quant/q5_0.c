/* Q5_0: 32 values in 22 bytes. F16 d, qh[4] (fifth bits), qs[16]; value = d * (level - 16). As Q4_0 with a bit more. */
#include "quant/block32.h"
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/k_search.h"
#include "quant/weights.h"

enum { QH = 2, QS = 6, BLOCK_BYTES = 22 };

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        values[i] = (float)(block32_five_bits(block + QH, block + QS, i) - 16) * d;
}

static void encode_block(const float *values, uint8_t *block)
{
    uint8_t levels[BLOCK32_ELEMENTS];
    float d = block32_signed_largest(values) / -16, inverse = block32_inverse(d);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        levels[i] = block32_level(values[i] * inverse + 16.5f, 31);
    f16_store(block, d);
    block32_pack_fifth_bits(levels, block + QH);
    block32_pack_nibbles(levels, block + QS);
}

static void encode_weighted_block(const float *values, const float *importance, float mean_square, uint8_t *block)
{
    uint8_t levels[BLOCK32_ELEMENTS];
    float weights[BLOCK32_ELEMENTS];
    importance_weights(values, importance, mean_square, BLOCK32_ELEMENTS, weights);
    f16_store(block, k_search_symmetric(BLOCK32_ELEMENTS, 16, values, weights, levels));
    block32_pack_fifth_bits(levels, block + QH);
    block32_pack_nibbles(levels, block + QS);
}

DEFINE_BLOCK_KERNELS(q5_0, BLOCK32_ELEMENTS, BLOCK_BYTES)
DEFINE_WEIGHTED_KERNEL(q5_0, BLOCK32_ELEMENTS, BLOCK_BYTES)

#if defined(__x86_64__)
decode_function q5_0_decode_avx2;
encode_function q5_0_encode_avx2;
#endif

const struct dtype q5_0_dtype = {
    .name = "Q5_0",
    .view_name = "q5_0",
    .kind = DTYPE_BLOCK,
    .block_elements = BLOCK32_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 6,
    .n_scales = 1,
    .weighs_rows = true,
    .encode_cost = 250,
    .kernels[CPU_PORTABLE] = {q5_0_decode, q5_0_encode, q5_0_encode_weighted},
#if defined(__x86_64__)
    .kernels[CPU_AVX2] = {q5_0_decode_avx2, q5_0_encode_avx2},
#endif
};
