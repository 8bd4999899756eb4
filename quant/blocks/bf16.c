/* BF16: the upper half of an F32. Encoding rounds to nearest even and sets the quiet bit of a NaN, as gguf-py does. */
#include "base/little_endian.h"
#include "quant/blocks/dtype.h"

#include <string.h>

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
