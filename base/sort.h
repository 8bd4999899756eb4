/* Stable sorting of indices for input that is mostly in order, such as the tensor names of files written by name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns less than, equal to or greater than 0 if element `a` comes before, with or after element `b`. */
typedef int sort_compare(const void *context, uint32_t a, uint32_t b);

/* Sorts `n` indices by merging sorted runs: r runs cost n log r comparisons, one run costs n. Knuth, The Art of
 * Computer Programming 3, 5.2.4, algorithm N. */
void sort_indices(uint32_t *indices, size_t n, sort_compare *compare, const void *context);

/* Returns the text of element `index`, and its length in bytes. */
typedef const char *sort_text(const void *context, uint32_t index, size_t *ret_length);

/* Sorts `n` indices by the bytes of texts, as text_compare() does. Names of tensors share long beginnings, so
 * this compares eight bytes of all texts at a time, as numbers, and goes on only with those that are equal. Bentley and
 * Sedgewick, Fast algorithms for sorting and searching strings, 1997, with eight bytes for a character, and merged runs
 * instead of a partition, which keeps sorted runs and has no bad case. */
void sort_texts(uint32_t *indices, size_t n, sort_text *text, const void *context);

/* Binary search in any sequence that is sorted by the question. */

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
