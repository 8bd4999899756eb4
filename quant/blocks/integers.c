/* Little-endian integers, and BOOL: decoding rounds to F32 to nearest even; any nonzero byte is true. */
#include "base/little_endian.h"
#include "quant/blocks/dtype.h"

#include <string.h>

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
