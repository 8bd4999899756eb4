/* Element types: floating point numbers, complex numbers, and integers. */
#include "base/little_endian.h"
#include "quant/blocks/dtype.h"
#include "quant/blocks/f16.h"

#include <string.h>

/* F32 and F64, and complex numbers. */

/* F32: IEEE 754 binary32, little-endian. */

static void f32_decode(const void *blocks, float *values, size_t n_blocks)
{
    memcpy(values, blocks, n_blocks * sizeof *values);
    little_endian(values, n_blocks, sizeof *values);
}

static void f32_encode(const float *values, void *blocks, size_t n_blocks)
{
    memcpy(blocks, values, n_blocks * sizeof *values);
    little_endian(blocks, n_blocks, sizeof *values);
}

const struct dtype f32_dtype = {
    .name = "F32",
    .view_name = "f32",
    .numpy = "<f4",
    .kind = DTYPE_FLOAT,
    .block_elements = 1,
    .block_bytes = 4,
    .ggml_type = 0,
    .encode_cost = 50,
    .kernels[CPU_PORTABLE] = {f32_decode, f32_encode},
};

/* F64: IEEE 754 binary64, little-endian, rounded to F32 to nearest even. */

static void f64_decode(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++) {
        double value;
        memcpy(&value, bytes + i * sizeof value, sizeof value);
        little_endian(&value, 1, sizeof value);
        values[i] = (float)value;
    }
}

const struct dtype f64_dtype = {
    .name = "F64",
    .numpy = "<f8",
    .kind = DTYPE_FLOAT,
    .block_elements = 1,
    .block_bytes = 8,
    .ggml_type = 28,
    .kernels[CPU_PORTABLE] = {.decode = f64_decode},
};

/* Complex numbers of two F16, F32 or F64: they have no F32 value. */

#define COMPLEX(type, its_name, bytes, its_numpy)                                                                      \
    const struct dtype type = {                                                                                        \
        .name = its_name,                                                                                              \
        .numpy = its_numpy,                                                                                            \
        .kind = DTYPE_COMPLEX,                                                                                         \
        .block_elements = 1,                                                                                           \
        .block_bytes = bytes,                                                                                          \
        .ggml_type = GGML_TYPE_NONE,                                                                                   \
    }

COMPLEX(c32_dtype, "C32", 4, NULL);
COMPLEX(c64_dtype, "C64", 8, "<c8");
COMPLEX(c128_dtype, "C128", 16, "<c16");

/* F16: IEEE 754 binary16, little-endian. */

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

/* BF16: the upper half of an F32. Encoding rounds to nearest even and sets the quiet bit of a NaN, as gguf-py does. */

static inline void bf16_decode(const uint8_t *bytes, float *values, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++) {
        uint16_t upper;
        memcpy(&upper, bytes + 2 * i, sizeof upper);
        little_endian(&upper, 1, sizeof upper);
        uint32_t bits = (uint32_t)upper << 16;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

static inline void bf16_encode(const float *values, uint8_t *bytes, size_t n_blocks)
{
    for (size_t i = 0; i < n_blocks; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bool nan = (bits & 0x7fffffff) > 0x7f800000;
        bits = nan ? bits | 0x00400000 : bits + 0x7fff + (bits >> 16 & 1);
        uint16_t upper = (uint16_t)(bits >> 16);
        little_endian(&upper, 1, sizeof upper);
        memcpy(bytes + 2 * i, &upper, sizeof upper);
    }
}

DEFINE_LEVELS(DEFINE_DECODER_AT, bf16_decode)
DEFINE_LEVELS(DEFINE_ENCODER_AT, bf16_encode)

const struct dtype bf16_dtype = {
    .name = "BF16",
    .view_name = "bf16",
    .kind = DTYPE_FLOAT,
    .block_elements = 1,
    .block_bytes = 2,
    .ggml_type = 30,
    .encode_cost = 130,
    .kernels[CPU_PORTABLE] = {bf16_decode_portable, bf16_encode_portable},
    .kernels[CPU_AVX2] = {ON_X86(bf16_decode_avx2), ON_X86(bf16_encode_avx2)},
    .kernels[CPU_AVX512] = {ON_X86(bf16_decode_avx512), ON_X86(bf16_encode_avx512)},
};

/* Floating-point numbers of 4, 6 and 8 bits. */

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

/* Little-endian integers, and BOOL: decoding rounds to F32 to nearest even; any nonzero byte is true. */

#define CONVERT(value) ((float)(value))

/* Defines the inline function NAME, which decodes n integers of a type by `convert`. */
#define DEFINE_DECODE(name, type, convert)                                                                             \
    static inline void name(const uint8_t *bytes, float *values, size_t n)                                             \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type value;                                                                                                \
            memcpy(&value, bytes + i * sizeof value, sizeof value);                                                    \
            little_endian(&value, 1, sizeof value);                                                                    \
            values[i] = convert(value);                                                                                \
        }                                                                                                              \
    }

#define DEFINE_DTYPE(prefix, type, its_name, its_numpy, its_ggml_type)                                                 \
    const struct dtype prefix##_dtype = {                                                                              \
        .name = its_name,                                                                                              \
        .numpy = its_numpy,                                                                                            \
        .kind = DTYPE_INTEGER,                                                                                         \
        .block_elements = 1,                                                                                           \
        .block_bytes = sizeof(type),                                                                                   \
        .ggml_type = its_ggml_type,                                                                                    \
        .kernels[CPU_PORTABLE] = {.decode = prefix##_decode_portable},                                                 \
        .kernels[CPU_AVX2] = {.decode = ON_X86(prefix##_decode_avx2)},                                                 \
        .kernels[CPU_AVX512] = {.decode = ON_X86(prefix##_decode_avx512)},                                             \
    }

#define INTEGER(prefix, type, ...)                                                                                     \
    DEFINE_DECODE(prefix##_decode, type, CONVERT)                                                                      \
    DEFINE_LEVELS(DEFINE_DECODER_AT, prefix##_decode)                                                                  \
    DEFINE_DTYPE(prefix, type, __VA_ARGS__)

INTEGER(i8, int8_t, "I8", "|i1", 24);
INTEGER(i16, int16_t, "I16", "<i2", 25);
INTEGER(i32, int32_t, "I32", "<i4", 26);
INTEGER(i64, int64_t, "I64", "<i8", 27);
INTEGER(u8, uint8_t, "U8", "|u1", GGML_TYPE_NONE);
INTEGER(u16, uint16_t, "U16", "<u2", GGML_TYPE_NONE);
INTEGER(u32, uint32_t, "U32", "<u4", GGML_TYPE_NONE);

DEFINE_DECODE(u64_decode, uint64_t, CONVERT)
DEFINE_DECODER_AT(u64_decode, portable)
#if defined(__x86_64__)
DEFINE_DECODER_AT(u64_decode, avx512, FOR_AVX512)

static inline double f64_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds by way of F64, without a branch and in operations that AVX2 has, which converts no 64-bit integers. A number
 * of more than 53 bits loses eleven, which leave one bit set if they were not all zero, so that it is still rounded to
 * the nearest F32. */
static inline float u64_round(uint64_t number)
{
    uint64_t is_long = number >> 53 != 0, has_rest = (number & 0x7ff) != 0;
    uint64_t kept = number ^ ((number ^ (number >> 11 | has_rest)) & -is_long);
    /* 2^52 + the low half, and 2^84 + the high one: the halves are their mantissas */
    double low = f64_of_bits((kept & 0xffffffff) | 0x433ull << 52), high = f64_of_bits(kept >> 32 | 0x453ull << 52);
    double factor = f64_of_bits((0x3ffull + 11 * is_long) << 52);
    return (float)((high - (0x1p84 + 0x1p52) + low) * factor);
}

DEFINE_DECODE(u64_rounding_decode, uint64_t, u64_round)

FOR_AVX2 static void u64_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    u64_rounding_decode(blocks, values, n_blocks);
}
#endif
DEFINE_DTYPE(u64, uint64_t, "U64", "<u8", GGML_TYPE_NONE);

static void bool_decode(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++)
        values[i] = bytes[i] != 0;
}

const struct dtype bool_dtype = {
    .name = "BOOL",
    .numpy = "|b1",
    .kind = DTYPE_INTEGER,
    .block_elements = 1,
    .block_bytes = 1,
    .ggml_type = GGML_TYPE_NONE,
    .kernels[CPU_PORTABLE] = {.decode = bool_decode},
};
