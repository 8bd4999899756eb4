/* Blocks of signed bytes: Q8_0, Q8_1 and Q8_K. */
#include "base/little_endian.h"
#include "quant/blocks/block32.h"
#include "quant/blocks/codes.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"
#include "quant/blocks/weights.h"

#include <string.h>

/* Q8_0: 32 values in 34 bytes. F16 d, i8 qs[32]; value = d * level. d is the largest magnitude over 127; levels round
 * half away from zero. */

enum { Q8_0_QS = 2, Q8_0_BYTES = 34 };

static void q8_0_decode_block(const uint8_t *block, float *values)
{
    float d = f16_load(block);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        values[i] = (float)(int8_t)block[Q8_0_QS + i] * d;
}

static void q8_0_encode_block(const float *values, uint8_t *block)
{
    float d = fabsf(largest_by_magnitude(values, BLOCK32_ELEMENTS)) / 127, inverse = block32_inverse(d);
    f16_store(block, d);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        block[Q8_0_QS + i] = (uint8_t)block32_round(values[i] * inverse);
}

DEFINE_BLOCK_KERNELS(q8_0, BLOCK32_ELEMENTS, Q8_0_BYTES)

decode_function q8_0_decode_avx2;
encode_function q8_0_encode_neon, q8_0_encode_avx2;

static inline void q8_0_nearest(const float *restrict values, uint8_t *restrict block)
{
    float d = f16_load(block);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++) {
        int32_t level = block32_round(d != 0 ? values[i] / d : 0);
        level = level < 127 ? level : 127;
        block[Q8_0_QS + i] = (uint8_t)(level > -128 ? level : -128);
    }
}

DEFINE_BLOCK32_CODES(q8_0, q8_0_nearest, Q8_0_BYTES, Q8_0_QS)

static float q8_0_load_scale(const uint8_t *block, float scales[SCALE_FORM_MOST])
{
    return scales[0] = f16_load(block);
}

static const struct scale_form q8_0_scale_form = {
    .span = SPAN_MAGNITUDE,
    .n_sub_blocks = 1,
    .n_steps = 127,
    .least = 0.999,
    .most = 1.001,
    .reach = 127,
    .load = q8_0_load_scale,
};

const struct dtype q8_0_dtype = {
    BLOCK_DTYPE(q8_0, "Q8_0", 8, BLOCK32_ELEMENTS, Q8_0_BYTES),
    .n_scales = 1,
    .encode_cost = 250,
    .kernels[CPU_PORTABLE] = {q8_0_decode, q8_0_encode},
    .kernels[CPU_NEON] = {NULL, ON_ARM(q8_0_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(q8_0_decode_avx2), ON_X86(q8_0_encode_avx2)},
    .codes = BLOCK32_CODES(q8_0),
    .scale_parts = {{0, Q8_0_QS}},
    .scale_form = &q8_0_scale_form,
};

/* Q8_1: 32 values in 36 bytes. F16 d, F16 s (d times the sum of the levels, unused here), i8 qs[32]; value = level * d.
 * ggml makes it from activations: wfs decodes it, but never encodes it. */

enum { Q8_1_ELEMENTS = 32, Q8_1_SUM = 2, Q8_1_QS = 4, Q8_1_BYTES = 36 };

static inline void q8_1_decode_block(const uint8_t *restrict block, float *restrict values)
{
    float d = f16_load(block);
    for (int i = 0; i < Q8_1_ELEMENTS; i++)
        values[i] = (float)(int8_t)block[Q8_1_QS + i] * d;
}

DEFINE_BLOCK_DECODERS(q8_1, Q8_1_ELEMENTS, Q8_1_BYTES)

const struct dtype q8_1_dtype = {
    .name = "Q8_1",
    .kind = DTYPE_BLOCK,
    .block_elements = Q8_1_ELEMENTS,
    .block_bytes = Q8_1_BYTES,
    .ggml_type = 9,
    .n_scales = 2,
    .scale_offset = {0, Q8_1_SUM},
    .kernels[CPU_PORTABLE] = {.decode = q8_1_decode_portable},
    .kernels[CPU_AVX2] = {.decode = ON_X86(q8_1_decode_avx2)},
    .kernels[CPU_AVX512] = {.decode = ON_X86(q8_1_decode_avx512)},
};

/* Q8_K: 256 values in 292 bytes. F32 d, i8 qs[256], i16 sums of every 16 levels (unused here); value = d * level. ggml
 * makes it from activations: wfs decodes it, but never encodes it. */

enum { Q8_K_ELEMENTS = 256, Q8_K_QS = 4, Q8_K_BYTES = 292 };

static void q8_k_decode(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += Q8_K_BYTES, values += Q8_K_ELEMENTS) {
        float d;
        memcpy(&d, block, sizeof d);
        little_endian(&d, 1, sizeof d);
        for (int j = 0; j < Q8_K_ELEMENTS; j++)
            values[j] = d * (float)(int8_t)block[Q8_K_QS + j];
    }
}

const struct dtype q8_k_dtype = {
    .name = "Q8_K",
    .kind = DTYPE_BLOCK,
    .block_elements = Q8_K_ELEMENTS,
    .block_bytes = Q8_K_BYTES,
    .ggml_type = 15,
    .kernels[CPU_PORTABLE] = {q8_k_decode, NULL},
};
