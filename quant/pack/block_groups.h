/* ggml's blocks as groups of MLX: natural numbers as codes with a scale and a bias, code * scale + bias, or E2M1 codes
 * with a scale of one byte. In F32 a group has exactly the values of its block, except that all its zeros are positive.
 *
 * A scale or bias that the block does not store is computed in F32: exact there, because the factors are short. */
#pragma once

#include "quant/blocks/dtype.h"

enum { GROUPS_OF_BLOCK_MAX = 8, BLOCK_GROUPS_ELEMENTS_MAX = 256 };

struct block_groups {
    const char *dtype;          /* of the blocks: "Q4_0" */
    uint8_t bits;               /* of a code */
    uint8_t columns;            /* of a group */
    const struct dtype *number; /* that holds scales and biases exactly, F16 or F32; U8: floats without a bias */

    /* Gets the codes of a block, one in a byte. */
    void (*codes)(const struct block_groups *groups, const uint8_t *block, uint8_t *codes);

    /* Gets the scales and biases of a block's groups; bytes as numbers for U8, without biases. */
    void (*numbers)(const struct block_groups *groups, const uint8_t *block, float *scales, float *biases);
};

/* Returns the groups of a block type; NULL if MLX has no such groups. */
const struct block_groups *block_groups_of(const struct dtype *dtype);
