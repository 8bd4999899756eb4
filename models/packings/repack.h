/* Packed weights as ggml's blocks that decode to exactly the same values: for elements made of a code, a 16-bit scale
 * and a zero point or offset, with scales for blocks of 32 columns. */
#pragma once

#include "models/packings/packed.h"

/* The formula of a matrix's elements: (code - middle) * scale, or code * scale + offset. */
struct repacking {
    const struct view *codes;            /* U8 [rows, columns], below 2^bits */
    const struct view *scales, *offsets; /* [rows, groups]; without offsets, NULL, the middle is 2^(bits - 1) */
    unsigned bits;
    uint64_t group_size;

    /* Stored zero points and groups, compared whenever blocks are read: reading fails for another zero point, or a
     * column of another group. NULL: not stored. */
    const struct view *zeros; /* U8 [rows, groups], all of them `zero` */
    uint8_t zero;
    const struct view *groups; /* by column: I32 or I64, in order */
};

/* Returns a view in Q4_0, Q4_1 or Q8_0; NULL if no such blocks are exact. */
const struct view *view_of_repacked(struct arena *arena, const struct repacking *repacking);

/* Reads all zero points and groups, and reports whether the blocks are right for them; true for any other view. */
bool view_repacked_holds(const struct view *view);
