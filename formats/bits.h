/* A view whose elements are those of another with their bytes swapped or their signs flipped. */
#pragma once

#include "quant/view.h"

struct bits {
    uint8_t component_bytes; /* 1, 2, 4, 8: an element is one component, or two of a complex number */
    bool swap;               /* the order of the bytes of each component */
    bool negate;             /* flips the sign of all components, the top bit */
    bool conjugate;          /* flips the sign of the second component of two */
};

/* `view` itself where there is nothing to do. The dtype has one element a block. */
const struct view *view_bits(struct arena *arena, const struct view *view, struct bits bits);
