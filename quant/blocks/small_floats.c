/* Floating-point numbers of 4, 6 and 8 bits. */
#include "quant/blocks/dtype.h"

#include <string.h>

/* F4: E2M1, two elements a byte, the first in the low nibble (OCP microscaling; the order is torch's). */

static void f4_decode(const void *blocks, float *values, size_t n_blocks)
{
    static const float e2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++) {
        values[2 * i] = e2m1[bytes[i] & 15];
        values[2 * i + 1] = e2m1[bytes[i] >> 4];
    }
}

decode_function f4_decode_neon, f4_decode_avx2;

const struct dtype f4_dtype = {
    .name = "F4",
    .kind = DTYPE_FLOAT,
    .block_elements = 2,
    .block_bytes = 1,
    .ggml_type = GGML_TYPE_NONE,
    .kernels[CPU_PORTABLE] = {.decode = f4_decode},
    .kernels[CPU_NEON] = {.decode = ON_ARM(f4_decode_neon)},
    .kernels[CPU_AVX2] = {.decode = ON_X86(f4_decode_avx2)},
};

/* F6: four elements in three bytes. No specification gives the order of the bits, so the values are not decoded. */

#define F6(type, its_name)                                                                                             \
    const struct dtype type = {                                                                                        \
        .name = its_name,                                                                                              \
        .kind = DTYPE_FLOAT,                                                                                           \
        .block_elements = 4,                                                                                           \
        .block_bytes = 3,                                                                                              \
        .ggml_type = GGML_TYPE_NONE,                                                                                   \
    }

F6(f6_e2m3_dtype, "F6_E2M3");
F6(f6_e3m2_dtype, "F6_E3M2");

/* The five 8-bit types: E4M3 and E5M2 (OCP 8-bit floating point), their FNUZ kin (AMD, Graphcore), and E8M0, a power of
 * two that scales other numbers (OCP microscaling). F32 holds all their values exactly. */

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Decodes a byte; a NaN has its sign. Has no branches, so that compilers vectorize it. */
static inline float decode_byte(uint8_t byte, unsigned mantissa_bits, unsigned bias, bool nan)
{
    uint32_t sign = (uint32_t)(byte & 0x80) << 24, magnitude = byte & 0x7f;
    float subnormal = (float)(int)magnitude * from_bits((128 - bias - mantissa_bits) << 23);
    uint32_t bits, normal = (magnitude << (23 - mantissa_bits)) + ((127 - bias) << 23);
    memcpy(&bits, &subnormal, sizeof bits);
    bits = magnitude >> mantissa_bits ? normal : bits;
    return from_bits((nan ? 0x7fc00000 : bits) | sign);
}

static void e4m3_decode(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++)
        values[i] = decode_byte(bytes[i], 3, 7, (bytes[i] & 0x7f) == 0x7f);
}

static void e5m2_decode(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++) {
        uint32_t magnitude = bytes[i] & 0x7f, infinity = (uint32_t)(bytes[i] & 0x80) << 24 | 0x7f800000;
        float value = decode_byte(bytes[i], 2, 15, magnitude > 0x7c);
        values[i] = magnitude == 0x7c ? from_bits(infinity) : value;
    }
}

/* The FNUZ types have one zero; the byte of negative zero is their NaN. */

static void e4m3fnuz_decode(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++)
        values[i] = decode_byte(bytes[i], 3, 8, bytes[i] == 0x80);
}

static void e5m2fnuz_decode(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++)
        values[i] = decode_byte(bytes[i], 2, 16, bytes[i] == 0x80);
}

static void e8m0_decode(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++) {
        uint32_t bits = (uint32_t)bytes[i] << 23;
        if (bytes[i] == 0)
            bits = 0x00400000;
        else if (bytes[i] == 0xff)
            bits = 0x7fc00000;
        values[i] = from_bits(bits);
    }
}

decode_function f8_e4m3_decode_avx2, f8_e5m2_decode_avx2, f8_e4m3fnuz_decode_avx2, f8_e5m2fnuz_decode_avx2;
decode_function f8_e8m0_decode_avx2;
decode_function f8_e4m3_decode_neon, f8_e5m2_decode_neon, f8_e4m3fnuz_decode_neon, f8_e5m2fnuz_decode_neon;
decode_function f8_e8m0_decode_neon;
decode_function f8_e4m3_decode_avx512, f8_e5m2_decode_avx512;

#define F8(type, its_name, its_decode, neon_decode, avx2_decode, avx512_decode)                                        \
    const struct dtype type = {                                                                                        \
        .name = its_name,                                                                                              \
        .kind = DTYPE_FLOAT,                                                                                           \
        .block_elements = 1,                                                                                           \
        .block_bytes = 1,                                                                                              \
        .ggml_type = GGML_TYPE_NONE,                                                                                   \
        .kernels[CPU_PORTABLE] = {.decode = its_decode},                                                               \
        .kernels[CPU_NEON] = {.decode = ON_ARM(neon_decode)},                                                          \
        .kernels[CPU_AVX2] = {.decode = ON_X86(avx2_decode)},                                                          \
        .kernels[CPU_AVX512] = {.decode = ON_X86(avx512_decode)},                                                      \
    }

F8(f8_e4m3_dtype, "F8_E4M3", e4m3_decode, f8_e4m3_decode_neon, f8_e4m3_decode_avx2, f8_e4m3_decode_avx512);
F8(f8_e5m2_dtype, "F8_E5M2", e5m2_decode, f8_e5m2_decode_neon, f8_e5m2_decode_avx2, f8_e5m2_decode_avx512);
F8(f8_e4m3fnuz_dtype, "F8_E4M3FNUZ", e4m3fnuz_decode, f8_e4m3fnuz_decode_neon, f8_e4m3fnuz_decode_avx2, NULL);
F8(f8_e5m2fnuz_dtype, "F8_E5M2FNUZ", e5m2fnuz_decode, f8_e5m2fnuz_decode_neon, f8_e5m2fnuz_decode_avx2, NULL);
F8(f8_e8m0_dtype, "F8_E8M0", e8m0_decode, f8_e8m0_decode_neon, f8_e8m0_decode_avx2, NULL);
