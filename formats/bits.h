/* Views that swap the bytes or flip the signs of another view's elements. */
#pragma once

#include "quant/views/view.h"

struct bits {
    uint8_t component_bytes; /* 1, 2, 4, 8: an element is one component, or two of a complex number */
    bool swap;               /* the order of the bytes of each component */
    bool negate;             /* flips the sign of all components, the top bit */
    bool conjugate;          /* flips the sign of the second component of two */
};

/* Returns such a view, in the arena, or `view` itself if nothing changes. The dtype has one element a block. */
const struct view *view_bits(struct arena *arena, const struct view *view, struct bits bits);
