/* Byte planes of numbers: byte 0 of every number, then byte 1 of every number, and so on.
 *
 * Weights are easier to compress by planes, because the bytes with the exponent are alike and the bytes with the
 * mantissa are noise. Rotating a number to the left by one bit moves its sign below its mantissa, so that the exponent
 * of BF16, F32 and F64 begins with a byte: for BF16 and F32 it is exactly that byte.
 *
 * Numbers are little-endian, at any alignment, of 1, 2, 4 or 8 bytes. Plane i begins at planes + i * n and has the
 * bytes that are i-th from below. Every level of processor gives the same bytes. */
#pragma once

#include "quant/blocks/dtype.h"

/* Splits `n` numbers of `width` bytes, rotated to the left by `rotation` bits (0 or 1). */
typedef void planes_split_function(const void *numbers, size_t n, unsigned rotation, unsigned char *planes);

/* Joins planes into the numbers that planes_split_function was given. */
typedef void planes_join_function(const unsigned char *planes, size_t n, unsigned rotation, void *numbers);

struct planes_kernels {
    planes_split_function *split;
    planes_join_function *join;
};

/* Return the fastest kernels for this processor, or for a level, of numbers of `width` bytes: 2, 4 or 8. */
const struct planes_kernels *planes_kernels(unsigned width);
const struct planes_kernels *planes_kernels_at(unsigned width, enum cpu_level level);

/* For the widths 2, 4 and 8. */
enum { PLANES_WIDTHS = 3 };
extern const struct planes_kernels planes_portable[PLANES_WIDTHS], planes_neon[PLANES_WIDTHS];
extern const struct planes_kernels planes_avx2[PLANES_WIDTHS];
