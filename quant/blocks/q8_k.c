/* Q8_K: 256 values in 292 bytes. F32 d, i8 qs[256], i16 sums of every 16 levels (unused here); value = d * level. ggml
 * makes it from activations: wfs decodes it, but never encodes it. */
#include "base/little_endian.h"
#include "quant/blocks/dtype.h"

#include <string.h>

enum { ELEMENTS = 256, QS = 4, BLOCK_BYTES = 292 };

static void decode(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES, values += ELEMENTS) {
        float d;
        memcpy(&d, block, sizeof d);
        little_endian(&d, 1, sizeof d);
        for (int j = 0; j < ELEMENTS; j++)
            values[j] = d * (float)(int8_t)block[QS + j];
    }
}

const struct dtype q8_k_dtype = {
    .name = "Q8_K",
    .kind = DTYPE_BLOCK,
    .block_elements = ELEMENTS,
    .block_bytes = BLOCK_BYTES,
    .ggml_type = 15,
    .kernels[CPU_PORTABLE] = {decode, NULL},
};
