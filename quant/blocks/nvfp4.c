/* NVFP4: 64 values in 36 bytes. Four 8-bit scales (four bits of exponent, three of mantissa, no sign), qs[32] with
 * eight bytes for every 16 values; value = scale / 2 * twice the E2M1 number of a nibble. */
#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/fp4.h"
#include "quant/blocks/weights.h"

enum { ELEMENTS = 64, SUB_ELEMENTS = 16, QS = 4, BLOCK_BYTES = 36 };

/* Returns the first of the numbers nearest to `value`. If the scale is too small for the value, all are equally far. */
static uint8_t nearest_code(float value, float scale)
{
    uint8_t nearest = 0;
    for (uint8_t code = 1; code < 16; code++)
        if (fabsf((float)mxfp4_doubled[code] * scale - value) < fabsf((float)mxfp4_doubled[nearest] * scale - value))
            nearest = code;
    return nearest;
}

static void decode_block(const uint8_t *block, float *values)
{
    for (int j = 0; j < ELEMENTS / SUB_ELEMENTS; j++, values += SUB_ELEMENTS) {
        float scale = nvfp4_half_scale(block[j]);
        const uint8_t *bytes = block + QS + 8 * j;
        for (int i = 0; i < 8; i++) {
            values[i] = (float)mxfp4_doubled[bytes[i] & 15] * scale;
            values[8 + i] = (float)mxfp4_doubled[bytes[i] >> 4] * scale;
        }
    }
}

static void encode_block(const float *values, uint8_t *block)
{
    for (int j = 0; j < ELEMENTS / SUB_ELEMENTS; j++, values += SUB_ELEMENTS) {
        block[j] = nvfp4_scale_of(fabsf(largest_by_magnitude(values, SUB_ELEMENTS)) / 6);
        float scale = nvfp4_half_scale(block[j]);
        for (int i = 0; i < 8; i++)
            block[QS + 8 * j + i] = (uint8_t)(nearest_code(values[i], scale) | nearest_code(values[8 + i], scale) << 4);
    }
}

DEFINE_BLOCK_KERNELS(nvfp4, ELEMENTS, BLOCK_BYTES)

decode_function nvfp4_decode_neon, nvfp4_decode_avx2;
encode_function nvfp4_encode_neon, nvfp4_encode_avx2;

const struct dtype nvfp4_dtype = {
    BLOCK_DTYPE(nvfp4, "NVFP4", 40, ELEMENTS),
    .encode_cost = 1500,
    .kernels[CPU_PORTABLE] = {nvfp4_decode, nvfp4_encode},
    .kernels[CPU_NEON] = {ON_ARM(nvfp4_decode_neon), ON_ARM(nvfp4_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(nvfp4_decode_avx2), ON_X86(nvfp4_encode_avx2)},
};
