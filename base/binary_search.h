/* Binary search, once: in any sequence whose elements are sorted as the question goes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether element `index` comes before what is searched for: true for all up to some element, false from there on. */
typedef bool search_before(const void *context, size_t index);

/* The first of `n` elements that does not come before what is searched for; n where all of them do. */
static inline size_t search_first(size_t n, search_before *before, const void *context)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (before(context, middle))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
