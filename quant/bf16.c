/* BF16: the upper half of an F32. Encoding rounds to nearest even and sets the quiet bit of a NaN, as gguf-py does. */
#include "base/checked.h"
#include "quant/dtype.h"

#include <string.h>

static void bf16_decode(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++) {
        uint32_t bits = (uint32_t)read_le(bytes + 2 * i, 2) << 16;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

static void bf16_encode(const float *values, void *blocks, size_t n_blocks)
{
    uint8_t *bytes = blocks;
    for (size_t i = 0; i < n_blocks; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bool nan = (bits & 0x7fffffff) > 0x7f800000;
        bits = nan ? bits | 0x00400000 : bits + 0x7fff + (bits >> 16 & 1);
        bytes[2 * i] = (uint8_t)(bits >> 16);
        bytes[2 * i + 1] = (uint8_t)(bits >> 24);
    }
}

decode_function bf16_decode_avx2;
encode_function bf16_encode_avx2;

const struct dtype bf16_dtype = {
    .name = "BF16",
    .view_name = "bf16",
    .kind = DTYPE_FLOAT,
    .block_elements = 1,
    .block_bytes = 2,
    .ggml_type = 30,
    .encode_cost = 130,
    .kernels[CPU_PORTABLE] = {bf16_decode, bf16_encode},
    .kernels[CPU_AVX2] = {ON_X86(bf16_decode_avx2), ON_X86(bf16_encode_avx2)},
};
