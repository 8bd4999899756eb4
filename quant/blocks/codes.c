#include "quant/blocks/codes.h"

#include <string.h>

enum { PARTS = sizeof((struct dtype *)NULL)->scale_parts / sizeof(struct block_part) };

codes_function *codes_at(const struct dtype *dtype, enum cpu_level level)
{
    codes_function *best = NULL;
    for (int i = CPU_PORTABLE; i <= (int)level; i++)
        if (dtype->codes[i] != NULL)
            best = dtype->codes[i];
    return best;
}

codes_function *codes_of(const struct dtype *dtype)
{
    return codes_at(dtype, cpu_level());
}

size_t codes_scale_bytes(const struct dtype *dtype)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < PARTS; i++)
        n_bytes += dtype->scale_parts[i].length;
    return n_bytes;
}

void codes_split(const struct dtype *dtype, const void *blocks, size_t n_blocks, void *scales)
{
    const uint8_t *block = blocks;
    uint8_t *out = scales;
    for (size_t i = 0; i < n_blocks; i++, block += dtype->block_bytes)
        for (size_t j = 0; j < PARTS; j++) {
            memcpy(out, block + dtype->scale_parts[j].offset, dtype->scale_parts[j].length);
            out += dtype->scale_parts[j].length;
        }
}

void codes_join(const struct dtype *dtype, const void *scales, size_t n_blocks, void *blocks)
{
    const uint8_t *from = scales;
    uint8_t *block = blocks;
    memset(blocks, 0, n_blocks * dtype->block_bytes);
    for (size_t i = 0; i < n_blocks; i++, block += dtype->block_bytes)
        for (size_t j = 0; j < PARTS; j++) {
            memcpy(block + dtype->scale_parts[j].offset, from, dtype->scale_parts[j].length);
            from += dtype->scale_parts[j].length;
        }
}
