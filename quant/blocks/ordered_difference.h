/* Differences of floating-point numbers in their order.
 *
 * The bits of a BF16, F16 or F32, with the lower ones inverted if the sign is set, are an integer in the order of the
 * values (Source: the sort key of radix sorts). A fine-tuned weight is a few steps of this order from its base. The
 * difference of two such integers, modulo 2^N, is stored without its sign as a zigzag code: 0, -1, 1, -2 ... are 0, 1,
 * 2, 3 ... Every pair of numbers has one code, and the base and the code give the number, NaN and -0 included.
 *
 * Numbers are little-endian, at any alignment, of 2 or 4 bytes. */
#pragma once

#include "quant/blocks/dtype.h"

/* Turns `n` numbers, in place, into their codes, given as many of the base. */
typedef void difference_function(unsigned char *numbers, const unsigned char *base, size_t n);

/* Moves the lowest 4 bits of `n` codes to (n + 1) / 2 bytes and shifts the codes to the right; or back. Byte j has the
 * bits of code j, and above them those of code j + (n + 1) / 2. */
typedef void difference_nibbles_function(unsigned char *codes, size_t n, unsigned char *nibbles);

struct difference_kernels {
    difference_function *code, *restore;
    difference_nibbles_function *take_nibbles, *give_nibbles;
};

/* Return the fastest kernels for this processor, or for a level, of numbers of `width` bytes: 2 or 4. */
const struct difference_kernels *difference_kernels(unsigned width);
const struct difference_kernels *difference_kernels_at(unsigned width, enum cpu_level level);
