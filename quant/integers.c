/* Integers, little-endian, and BOOL: as numbers they are rounded to F32 to nearest even; any byte but zero is true. */
#include "quant/dtype.h"

#include <string.h>

decode_function u8_decode_avx2, i8_decode_avx2, u64_decode_avx2;
decode_function u8_decode_avx512, i64_decode_avx512, u64_decode_avx512;

#define INTEGER(prefix, type, its_name, its_numpy, its_ggml_type, avx2_decode, avx512_decode)                          \
    static void prefix##_decode(const void *blocks, float *values, size_t n_blocks)                                    \
    {                                                                                                                  \
        const uint8_t *bytes = blocks;                                                                                 \
        for (size_t i = 0; i < n_blocks; i++) {                                                                        \
            type value;                                                                                                \
            memcpy(&value, bytes + i * sizeof value, sizeof value);                                                    \
            values[i] = (float)value;                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    const struct dtype prefix##_dtype = {                                                                              \
        .name = its_name,                                                                                              \
        .numpy = its_numpy,                                                                                            \
        .kind = DTYPE_INTEGER,                                                                                         \
        .block_elements = 1,                                                                                           \
        .block_bytes = sizeof(type),                                                                                   \
        .ggml_type = its_ggml_type,                                                                                    \
        .kernels[CPU_PORTABLE] = {.decode = prefix##_decode},                                                          \
        .kernels[CPU_AVX2] = {.decode = ON_X86(avx2_decode)},                                                          \
        .kernels[CPU_AVX512] = {.decode = ON_X86(avx512_decode)},                                                      \
    }

INTEGER(i8, int8_t, "I8", "|i1", 24, i8_decode_avx2, NULL);
INTEGER(i16, int16_t, "I16", "<i2", 25, NULL, NULL);
INTEGER(i32, int32_t, "I32", "<i4", 26, NULL, NULL);
INTEGER(i64, int64_t, "I64", "<i8", 27, NULL, i64_decode_avx512);
INTEGER(u8, uint8_t, "U8", "|u1", GGML_TYPE_NONE, u8_decode_avx2, u8_decode_avx512);
INTEGER(u16, uint16_t, "U16", "<u2", GGML_TYPE_NONE, NULL, NULL);
INTEGER(u32, uint32_t, "U32", "<u4", GGML_TYPE_NONE, NULL, NULL);
INTEGER(u64, uint64_t, "U64", "<u8", GGML_TYPE_NONE, u64_decode_avx2, u64_decode_avx512);

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
