/* Binary search in any sequence that is sorted by the question. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Reports whether element `index` comes before the wanted place: true up to some element, false from there on. */
typedef bool search_before(const void *context, size_t index);

/* Returns the first of `n` elements that does not come before the wanted place; n if all do. */
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
