/* Q4_0 by another rule, as some engines quantize at load time: d = amax / 7, levels rounded half away from zero and clamped to
 * -8 .. 7. The layout is Q4_0's. The level is x / d, or 0 where d is 0. */
#include "quant/dtype.h"
#include "quant/f16.h"
#include "quant/legacy.h"

enum { QS = 2, BLOCK_BYTES = 18 };

static void encode_block(const float *values, uint8_t *block)
{
    uint8_t levels[LEGACY_ELEMENTS];
    float d = fabsf(legacy_signed_largest(values)) / 7;
    for (int i = 0; i < LEGACY_ELEMENTS; i++) {
        int level = d != 0 ? legacy_round(values[i] / d) : 0;
        levels[i] = (uint8_t)(8 + (level < -8 ? -8 : level < 7 ? level : 7));
    }
    f16_store(block, d);
    legacy_pack_nibbles(levels, block + QS);
}

static void decode_block(const uint8_t *block, float *values)
{
    q4_0_dtype.kernels[CPU_PORTABLE].decode(block, values, 1);
}

DEFINE_BLOCK_KERNELS(q4_0_absmax7, LEGACY_ELEMENTS, BLOCK_BYTES)

#if defined(__x86_64__)
decode_function q4_0_absmax7_decode_avx2;
encode_function q4_0_absmax7_encode_avx2;
#endif

const struct dtype q4_0_absmax7_dtype = {
    .name = "Q4_0",
    .view_name = "q4_0",
    .kind = DTYPE_BLOCK,
    .block_elements = LEGACY_ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 2,
    .n_scales = 1,
    .encode_cost = 250,
    .kernels[CPU_PORTABLE] = {q4_0_absmax7_decode, q4_0_absmax7_encode},
#if defined(__x86_64__)
    .kernels[CPU_AVX2] = {q4_0_absmax7_decode_avx2, q4_0_absmax7_encode_avx2},
#endif
};
