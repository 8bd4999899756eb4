/* MXFP4: 32 values in 17 bytes. E8M0 scale, qs[16]; value = 2^(e - 128) * twice the E2M1 number of a nibble. */
#include "quant/blocks/block32.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/fp4.h"
#include "quant/blocks/weights.h"

enum { QS = 1, BLOCK_BYTES = 17 };

const int8_t mxfp4_doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* Returns the code of the nearest number, the smaller of two. The reference compares the distances to all sixteen;
 * those to the two numbers around a value are exact if they are nearly equal, so comparing with midpoints gives the
 * same code. */
static uint8_t nearest_code(float value, float scale)
{
    static const float midpoints[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10};
    unsigned code = 0;
    for (int i = 0; i < 7; i++)
        code += fabsf(value) > midpoints[i] * scale;
    return (uint8_t)(code != 0 && value < 0 ? code | 8 : code);
}

static void decode_block(const uint8_t *block, float *values)
{
    float scale = mxfp4_half_scale(block[0]);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        values[i] = (float)mxfp4_doubled[block32_nibble(block + QS, i)] * scale;
}

uint8_t mxfp4_exponent(float largest)
{
    return largest > 0 ? (uint8_t)block32_truncate(floorf(log2f(largest)) - 2 + 127) : 0;
}

static void encode_block(const float *values, uint8_t *block)
{
    uint8_t codes[BLOCK32_ELEMENTS];
    block[0] = mxfp4_exponent(fabsf(largest_by_magnitude(values, BLOCK32_ELEMENTS)));
    float scale = mxfp4_half_scale(block[0]);
    for (int i = 0; i < BLOCK32_ELEMENTS; i++)
        codes[i] = nearest_code(values[i], scale);
    block32_pack_nibbles(codes, block + QS);
}

DEFINE_BLOCK_KERNELS(mxfp4, BLOCK32_ELEMENTS, BLOCK_BYTES)

decode_function mxfp4_decode_neon, mxfp4_decode_avx2;
encode_function mxfp4_encode_neon, mxfp4_encode_avx2;

const struct dtype mxfp4_dtype = {
    BLOCK_DTYPE(mxfp4, "MXFP4", 39, BLOCK32_ELEMENTS),
    .encode_cost = 400,
    .kernels[CPU_PORTABLE] = {mxfp4_decode, mxfp4_encode},
    .kernels[CPU_NEON] = {ON_ARM(mxfp4_decode_neon), ON_ARM(mxfp4_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(mxfp4_decode_avx2), ON_X86(mxfp4_encode_avx2)},
};
