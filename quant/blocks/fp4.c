/* Blocks of E2M1 numbers: MXFP4 and NVFP4. */
#include "quant/blocks/fp4.h"

#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/weights.h"

/* MXFP4: 32 values in 17 bytes. E8M0 scale, qs[16]; value = 2^(e - 128) * twice the E2M1 number of a nibble. */

enum { MXFP4_QS = 1, MXFP4_BYTES = 17 };

const int8_t mxfp4_doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* Returns the code of the nearest number, the smaller of two. The reference compares the distances to all sixteen;
 * those to the two numbers around a value are exact if they are nearly equal, so comparing with midpoints gives the
 * same code. */
static uint8_t mxfp4_nearest_code(float value, float scale)
{
    static const float midpoints[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10};
    unsigned code = 0;
    for (int i = 0; i < 7; i++)
        code += fabsf(value) > midpoints[i] * scale;
    return (uint8_t)(code != 0 && value < 0 ? code | 8 : code);
}

static void mxfp4_decode_block(const uint8_t *block, float *values)
{
    float scale = mxfp4_half_scale(block[0]);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        values[i] = (float)mxfp4_doubled[block32_nibble(block + MXFP4_QS, i)] * scale;
}

uint8_t mxfp4_exponent(float largest)
{
    return largest > 0 ? (uint8_t)block32_truncate(floorf(log2f(largest)) - 2 + 127) : 0;
}

static void mxfp4_encode_block(const float *values, uint8_t *block)
{
    uint8_t codes[BLOCK32_ELEMENTS];
    block[0] = mxfp4_exponent(fabsf(largest_by_magnitude(values, BLOCK32_ELEMENTS)));
    float scale = mxfp4_half_scale(block[0]);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        codes[i] = mxfp4_nearest_code(values[i], scale);
    block32_pack_nibbles(codes, block + MXFP4_QS);
}

DEFINE_BLOCK_KERNELS(mxfp4, BLOCK32_ELEMENTS, MXFP4_BYTES)

decode_function mxfp4_decode_neon, mxfp4_decode_avx2;
encode_function mxfp4_encode_neon, mxfp4_encode_avx2;

const struct dtype mxfp4_dtype = {
    BLOCK_DTYPE(mxfp4, "MXFP4", 39, BLOCK32_ELEMENTS, MXFP4_BYTES),
    .encode_cost = 400,
    .kernels[CPU_PORTABLE] = {mxfp4_decode, mxfp4_encode},
    .kernels[CPU_NEON] = {ON_ARM(mxfp4_decode_neon), ON_ARM(mxfp4_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(mxfp4_decode_avx2), ON_X86(mxfp4_encode_avx2)},
};

/* NVFP4: 64 values in 36 bytes. Four 8-bit scales (four bits of exponent, three of mantissa, no sign), qs[32] with
 * eight bytes for every 16 values; value = scale / 2 * twice the E2M1 number of a nibble. */

enum { NVFP4_ELEMENTS = 64, NVFP4_SUB_ELEMENTS = 16, NVFP4_QS = 4, NVFP4_BYTES = 36 };

/* Returns the first of the numbers nearest to `value`. If the scale is too small for the value, all are equally far. */
static uint8_t nvfp4_nearest_code(float value, float scale)
{
    uint8_t nearest = 0;
    for (uint8_t code = 1; code < 16; code++)
        if (fabsf((float)mxfp4_doubled[code] * scale - value) < fabsf((float)mxfp4_doubled[nearest] * scale - value))
            nearest = code;
    return nearest;
}

static void nvfp4_decode_block(const uint8_t *block, float *values)
{
    for (int j = 0; j < NVFP4_ELEMENTS / NVFP4_SUB_ELEMENTS; j++, values += NVFP4_SUB_ELEMENTS) {
        float scale = nvfp4_half_scale(block[j]);
        const uint8_t *bytes = block + NVFP4_QS + 8 * j;
        for (int i = 0; i < 8; i++) {
            values[i] = (float)mxfp4_doubled[bytes[i] & 15] * scale;
            values[8 + i] = (float)mxfp4_doubled[bytes[i] >> 4] * scale;
        }
    }
}

static void nvfp4_encode_block(const float *values, uint8_t *block)
{
    for (int j = 0; j < NVFP4_ELEMENTS / NVFP4_SUB_ELEMENTS; j++, values += NVFP4_SUB_ELEMENTS) {
        block[j] = nvfp4_scale_of(fabsf(largest_by_magnitude(values, NVFP4_SUB_ELEMENTS)) / 6);
        float scale = nvfp4_half_scale(block[j]);
        for (int i = 0; i < 8; i++)
            block[NVFP4_QS + 8 * j + i] =
                (uint8_t)(nvfp4_nearest_code(values[i], scale) | nvfp4_nearest_code(values[8 + i], scale) << 4);
    }
}

DEFINE_BLOCK_KERNELS(nvfp4, NVFP4_ELEMENTS, NVFP4_BYTES)

decode_function nvfp4_decode_neon, nvfp4_decode_avx2;
encode_function nvfp4_encode_neon, nvfp4_encode_avx2;

const struct dtype nvfp4_dtype = {
    BLOCK_DTYPE(nvfp4, "NVFP4", 40, NVFP4_ELEMENTS, NVFP4_BYTES),
    .encode_cost = 1500,
    .kernels[CPU_PORTABLE] = {nvfp4_decode, nvfp4_encode},
    .kernels[CPU_NEON] = {ON_ARM(nvfp4_decode_neon), ON_ARM(nvfp4_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(nvfp4_decode_avx2), ON_X86(nvfp4_encode_avx2)},
};
