/* Q4_1: 32 values in 20 bytes. F16 d, F16 m (the minimum), qs[16]; value = d * level + m. */
#include "quant/block32.h"
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/k_search.h"
#include "quant/weights.h"

enum { M = 2, QS = 4, BLOCK_BYTES = 20 };

static void decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block), m = f16_load(block + M);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        values[i] = (float)block32_nibble(block + QS, i) * d + m;
}

static void encode_block(const float *values, uint8_t *block)
{
    uint8_t levels[BLOCK32_ELEMENTS];
    float minimum, maximum;
    block32_range(values, &minimum, &maximum);
    float d = (maximum - minimum) / 15, inverse = block32_inverse(d);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        levels[i] = block32_level((values[i] - minimum) * inverse + 0.5f, 15);
    f16_store(block, d);
    f16_store(block + M, minimum);
    block32_pack_nibbles(levels, block + QS);
}

static void encode_weighted_block(const float *values, const float *importance, float mean_square, uint8_t *block)
{
    const struct k_range_search range = K_WEIGHTED_RANGE(15);
    uint8_t levels[BLOCK32_ELEMENTS];
    float weights[BLOCK32_ELEMENTS], minimum;
    importance_weights(values, importance, mean_square, BLOCK32_ELEMENTS, weights);
    f16_store(block, k_search_range(&range, BLOCK32_ELEMENTS, values, weights, levels, &minimum));
    f16_store(block + M, -minimum);
    block32_pack_nibbles(levels, block + QS);
}

DEFINE_BLOCK_KERNELS(q4_1, BLOCK32_ELEMENTS, BLOCK_BYTES)
DEFINE_WEIGHTED_KERNEL(q4_1, BLOCK32_ELEMENTS, BLOCK_BYTES)

#if defined(__x86_64__)
decode_function q4_1_decode_avx2;
encode_function q4_1_encode_avx2;
#endif

const struct dtype q4_1_dtype = {
    .name = "Q4_1",
    .view_name = "q4_1",
    .kind = DTYPE_BLOCK,
    .block_elements = BLOCK32_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 3,
    .n_scales = 2,
    .scale_offset = {0, M},
    .weighs_rows = true,
    .encode_cost = 250,
    .kernels[CPU_PORTABLE] = {q4_1_decode, q4_1_encode, q4_1_encode_weighted},
#if defined(__x86_64__)
    .kernels[CPU_AVX2] = {q4_1_decode_avx2, q4_1_encode_avx2},
#endif
};
