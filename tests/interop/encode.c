/* encode DTYPE <values >blocks, or encode -d DTYPE <blocks >values: one dtype's kernels as a filter of F32 values.
 * WFS_CPU chooses the kernels, as everywhere. */
#include "base/arena.h"
#include "quant/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    bool decode = argc == 3 && strcmp(argv[1], "-d") == 0;
    const struct dtype *dtype = argc == 2 || decode ? dtype_by_name(argv[argc - 1]) : NULL;
    struct kernels kernels = dtype != NULL ? dtype_kernels(dtype) : (struct kernels){0};
    if (decode ? kernels.decode == NULL : kernels.encode == NULL) {
        fprintf(stderr, "usage: encode [-d] DTYPE\n");
        return 2;
    }
    enum { BLOCKS = 256 };
    size_t values_size = dtype->block_elements * sizeof(float), block_size = dtype->block_bytes, n_blocks;
    float *values = memory_alloc(BLOCKS * values_size);
    unsigned char *blocks = memory_alloc(BLOCKS * block_size);
    while ((n_blocks = decode ? fread(blocks, block_size, BLOCKS, stdin) : fread(values, values_size, BLOCKS, stdin)) > 0) {
        if (decode) {
            kernels.decode(blocks, values, n_blocks);
            fwrite(values, values_size, n_blocks, stdout);
        } else {
            kernels.encode(values, blocks, n_blocks);
            fwrite(blocks, block_size, n_blocks, stdout);
        }
    }
    free(values);
    free(blocks);
    return fflush(stdout) != 0;
}
