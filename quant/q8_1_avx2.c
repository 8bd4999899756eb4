#include "quant/avx2.h"
#include "quant/dtype.h"

enum { ELEMENTS = 32, QS = 4, BLOCK_BYTES = 36 };

decode_function q8_1_decode_avx2;

void q8_1_decode_avx2(const void *blocks, float *values, size_t n_blocks)
{
    const uint8_t *block = blocks;
    for (size_t i = 0; i < n_blocks; i++, block += BLOCK_BYTES, values += ELEMENTS)
        store_scaled(values, _mm256_loadu_si256((const __m256i *)(const void *)(block + QS)), load_scale(block));
}
