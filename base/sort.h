/* Sorting of indices, where much is in order already: names of a file that was written by name, of several such, of
 * what was made of them in turn. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Less than, equal to or greater than 0, as element `a` comes before, with or after element `b`. */
typedef int sort_compare(const void *context, uint32_t a, uint32_t b);

/* Sorts `n` indices; equal ones stay in their order. Runs that are sorted are found and merged: r runs cost n log r
 * comparisons, one costs n. Knuth, The Art of Computer Programming 3, 5.2.4, algorithm N. */
void sort_indices(uint32_t *indices, size_t n, sort_compare *compare, const void *context);
