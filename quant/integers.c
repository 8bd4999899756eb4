/* Little-endian integers, and BOOL: decoding rounds to F32 to nearest even; any nonzero byte is true. */
#include "quant/dtype.h"

#include <string.h>

#define INTEGER(prefix, type, its_name, its_numpy, its_ggml_type)                                                      \
    static inline void prefix##_decode(const uint8_t *bytes, float *values, size_t n)                                  \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type value;                                                                                                \
            memcpy(&value, bytes + i * sizeof value, sizeof value);                                                    \
            values[i] = (float)value;                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    DEFINE_LEVELS(DEFINE_DECODER_AT, prefix##_decode)                                                                  \
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

INTEGER(i8, int8_t, "I8", "|i1", 24);
INTEGER(i16, int16_t, "I16", "<i2", 25);
INTEGER(i32, int32_t, "I32", "<i4", 26);
INTEGER(i64, int64_t, "I64", "<i8", 27);
INTEGER(u8, uint8_t, "U8", "|u1", GGML_TYPE_NONE);
INTEGER(u16, uint16_t, "U16", "<u2", GGML_TYPE_NONE);
INTEGER(u32, uint32_t, "U32", "<u4", GGML_TYPE_NONE);
INTEGER(u64, uint64_t, "U64", "<u8", GGML_TYPE_NONE);

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
