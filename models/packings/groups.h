/* Packed weights as codes and the numbers of their groups, for outputs that keep both: a weight is a view of its values
 * that remembers them. */
#pragma once

#include "quant/views/view.h"

/* The parts of a weight whose groups lie along its rows, [..., rows, columns] with all rows below each other. Scales of
 * one byte are those of floating-point codes: exponents of 2 with a bias of 127, or E4M3. Otherwise codes are natural
 * numbers, and an element is code * scale + bias, or (code - zero) * scale. */
struct code_groups {
    const struct view
        *codes; /* U8 [rows, columns], below 2^bits; NULL: quantized in another way, and nothing else is set */
    const struct view *scales; /* [rows, groups]: U8, or F16, BF16 or F32 */
    const struct view *biases; /* [rows, groups], F16, BF16 or F32; NULL: there are zero points instead */
    const struct view *zeros;  /* [rows, groups], whole numbers in any dtype; NULL: all are 2^(bits - 1) */
    const struct view *factor; /* F32 [1], multiplies floating-point values; NULL: 1 */
    const struct view *order;  /* the group of each column, I32 or I64; NULL: neighbours, group_size each */
    uint64_t group_size;       /* columns; the last group may have fewer */
    uint8_t bits;
    bool is_transposed; /* the weight has the last two axes swapped: [..., columns, rows] */
    bool is_symmetric;  /* the weight declares that all zero points are 2^(bits - 1), which its zeros may contradict */
};

/* Returns `values` with their groups, which must live as long. */
const struct view *view_of_groups(struct arena *arena, const struct view *values, const struct code_groups *groups);

/* Returns the groups of such a view; NULL for any other view. */
const struct code_groups *groups_of(const struct view *view);
