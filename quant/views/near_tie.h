/* Near ties: blocks that another rounding of the same arithmetic would give.
 *
 * An encoder chooses between levels, scales and candidates of a search. Where two choices are almost equally good, the
 * last bit of an intermediate result decides: a compiler that contracts a * b + c into one rounding, as compilers do on
 * ARM, chooses differently in about one block of a hundred. Such a block is exactly what the encoder gives for weights
 * that differ from the source's by less than one part in 50,000, far less than F16 or BF16 can tell, which is how
 * near_tie() recognizes it: it encodes the block again and again, each time with other tiny changes. Of 1578 blocks of
 * Q6_K that ggml made on ARM of weights in BF16, where ties are frequent, it recognizes 1572. */
#pragma once

#include "quant/blocks/dtype.h"
#include "quant/views/view.h"

/* Compares `found` with encodings of block `block` of `view` as `target`, if convert_possible(). *ret_near is true if
 * one of them is equal. Blocks that are copied from the source are near only if they are elements of F32 or F64, which
 * another mathematical library may have computed. Fails if the source cannot be read. */
bool near_tie(const struct view *view, struct encoding target, uint64_t block, const void *found, bool *ret_near,
              struct error *error);

/* Gets the squared errors of two blocks, which must have a decoder: their distances from the values of block `block` of
 * the view. */
bool block_errors(const struct view *view, const struct dtype *dtype, uint64_t block, const void *expected,
                  const void *found, double ret_errors[2], struct error *error);

/* Returns the largest difference between the values of two blocks, in units of the scale of `expected`: the F16 scale
 * that begins most block types; for types without such a scale, the largest value. Infinite if a value is not finite or
 * the unit is 0; 0 if the values are equal. */
double block_distance(const struct dtype *dtype, const void *expected, const void *found);
