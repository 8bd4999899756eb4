/* Packed weights as blocks of ggml that decode to just the same values: where a code, a scale of 16 bits and what is
 * subtracted or added are all that an element is made of, and the scales are those of blocks of 32 columns. */
#pragma once

#include "models/packings/packed.h"

/* What the elements of a matrix are made of: (code - middle) * scale, or code * scale + offset. */
struct repacking {
    const struct view *codes;            /* U8 [rows, columns], below 2^bits */
    const struct view *scales, *offsets; /* [rows, groups]; without offsets, NULL, the middle is 2^(bits - 1) */
    unsigned bits;
    uint64_t group_size;

    /* What says that it is so, and is compared wherever blocks are read: another zero point, or a column of another
     * group, is an error of the blocks it is in. NULL: nothing does. */
    const struct view *zeros; /* U8 [rows, groups], all of them `zero` */
    uint8_t zero;
    const struct view *groups; /* of each column: I32 or I64, in order */
};

/* Q4_0, Q4_1 or Q8_0; NULL where it would not be exact, or there are no such blocks. */
const struct view *view_of_repacked(struct arena *arena, const struct repacking *repacking);

/* Whether zero points and groups are what blocks need, all of which are read. True of every other view. */
bool view_repacked_holds(const struct view *view);
