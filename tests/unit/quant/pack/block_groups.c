/* ggml's blocks as groups of MLX: code * scale + bias, in F32, are the values that the blocks decode to, which
 * tests/interop and tests/data/quant compare with ggml's own. */
#include "quant/pack/block_groups.h"

#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 500, BLOCK_BYTES_MAX = 256 };

static const float e2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

static float value_of(const struct block_groups *groups, unsigned code, float scale, float bias)
{
    if (groups->number != &u8_dtype)
        return (float)code * scale + bias;
    if (groups->columns == 32)
        return e2m1[code] * ldexpf(1, (int)scale - 127);
    uint8_t byte = (uint8_t)scale;
    float e4m3;
    dtype_kernels(&f8_e4m3_dtype).decode(&byte, &e4m3, 1);
    return e2m1[code] * e4m3;
}

/* Makes a block of random bytes, whose F16 numbers are finite, or whose scales have no sign. */
static void fill(const struct dtype *dtype, uint8_t *block)
{
    for (unsigned i = 0; i < dtype->block_bytes; i++)
        block[i] = (uint8_t)rand();
    for (unsigned i = 0; i < dtype->n_scales; i++)
        block[dtype->scale_offset[i] + 1] &= 0xbb; /* an exponent below that of infinity, and no overflow of a bias */
    for (unsigned i = 0; i < 4 && strcmp(dtype->name, "NVFP4") == 0; i++)
        block[i] = (uint8_t)(block[i] % 0x7f);
}

static void compare(const char *name, unsigned bits)
{
    const struct dtype *dtype = dtype_by_name(name);
    const struct block_groups *groups = block_groups_of(dtype);
    uint8_t block[BLOCK_BYTES_MAX], codes[BLOCK_GROUPS_ELEMENTS_MAX];
    float expected[BLOCK_GROUPS_ELEMENTS_MAX], scales[GROUPS_OF_BLOCK_MAX], biases[GROUPS_OF_BLOCK_MAX];
    unsigned n_wrong = 0;
    CHECK(groups != NULL && groups->bits == bits);
    for (unsigned i = 0; i < BLOCKS; i++) {
        fill(dtype, block);
        dtype_kernels(dtype).decode(block, expected, 1);
        groups->codes(groups, block, codes);
        groups->numbers(groups, block, scales, biases);
        for (unsigned k = 0; k < dtype->block_elements; k++) {
            unsigned group = k / groups->columns;
            n_wrong += codes[k] >= 1u << bits;
            n_wrong += value_of(groups, codes[k], scales[group], biases[group]) != expected[k];
        }
    }
    CHECK(n_wrong == 0);
}

/* Scales and biases lose nothing in the type that holds them. */
static void check_numbers(const char *name)
{
    const struct dtype *dtype = dtype_by_name(name);
    const struct block_groups *groups = block_groups_of(dtype);
    uint8_t block[BLOCK_BYTES_MAX], stored[4];
    float numbers[2][GROUPS_OF_BLOCK_MAX] = {{0}}, back;
    unsigned n_wrong = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        fill(dtype, block);
        block[1] &= 0xaf; /* -128 times this scale is still finite in F16 */
        groups->numbers(groups, block, numbers[0], numbers[1]);
        for (unsigned k = 0; k < 2; k++) {
            dtype_kernels(groups->number).encode(&numbers[k][0], stored, 1);
            dtype_kernels(groups->number).decode(stored, &back, 1);
            n_wrong += back != numbers[k][0];
        }
    }
    CHECK(n_wrong == 0);
}

int main(void)
{
    compare("Q4_0", 4);
    compare("Q4_1", 4);
    compare("Q5_0", 5);
    compare("Q5_1", 5);
    compare("Q8_0", 8);
    compare("Q4_K", 4);
    compare("Q5_K", 5);
    compare("MXFP4", 4);
    compare("NVFP4", 4);
    check_numbers("Q4_0");
    check_numbers("Q5_1");
    check_numbers("Q8_0");
    check_numbers("Q4_K");
    CHECK(block_groups_of(dtype_by_name("Q6_K")) == NULL);
    CHECK(block_groups_of(&f16_dtype) == NULL);
    return check_done();
}
