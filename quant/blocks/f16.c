/* F16: IEEE 754 binary16, little-endian. */
#include "quant/blocks/f16.h"

#include "base/little_endian.h"
#include "quant/blocks/dtype.h"

#include <string.h>

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    if (exponent == 0x1f)
        return from_bits(sign | 0x7f800000 | mantissa << 13);
    if (exponent != 0)
        return from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float magnitude = (float)mantissa * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

uint16_t f16_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) { /* at least one bit, or it would be infinity */
        uint16_t payload = (uint16_t)(magnitude >> 13 & 0x3ff);
        return sign | 0x7c00 | (payload != 0 ? payload : 1);
    }
    if (magnitude >= 0x477ff000) /* 65520 and above round to infinity */
        return sign | 0x7c00;
    if (magnitude < 0x38800000) { /* below 2^-14: adding 0.5 leaves the mantissa in units of 2^-24, rounded to even */
        float shifted = from_bits(magnitude) + 0.5f;
        memcpy(&bits, &shifted, sizeof bits);
        return sign | (uint16_t)(bits - 0x3f000000);
    }
    uint32_t odd = magnitude >> 13 & 1;
    return sign | (uint16_t)((magnitude - 0x38000000 + 0xfff + odd) >> 13);
}

static void f16_decode(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++)
        values[i] = f16_load(bytes + 2 * i);
}

static void f16_encode(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++) {
        uint16_t half = f16_from_f32(values[i]);
        little_endian(&half, 1, sizeof half);
        memcpy(bytes + 2 * i, &half, sizeof half);
    }
}

decode_function f16_decode_neon, f16_decode_avx2;
encode_function f16_encode_neon, f16_encode_avx2;

const struct dtype f16_dtype = {
    .name = "F16",
    .view_name = "f16",
    .numpy = "<f2",
    .kind = DTYPE_FLOAT,
    .block_elements = 1,
    .block_bytes = 2,
    .ggml_type = 1,
    .encode_cost = 140,
    .kernels[CPU_PORTABLE] = {f16_decode, f16_encode},
    .kernels[CPU_NEON] = {ON_ARM(f16_decode_neon), ON_ARM(f16_encode_neon)},
    .kernels[CPU_AVX2] = {ON_X86(f16_decode_avx2), ON_X86(f16_encode_avx2)},
};
