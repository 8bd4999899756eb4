/* Sorting of indices, where much is in order already: names of a file that was written by name, of several such, of
 * what was made of them in turn. Equal ones stay in their order. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Less than, equal to or greater than 0, as element `a` comes before, with or after element `b`. */
typedef int sort_compare(const void *context, uint32_t a, uint32_t b);

/* Sorts `n` indices. Runs that are sorted are found and merged: r runs cost n log r
 * comparisons, one costs n. Knuth, The Art of Computer Programming 3, 5.2.4, algorithm N. */
void sort_indices(uint32_t *indices, size_t n, sort_compare *compare, const void *context);

/* The text of element `index`, and its length in bytes. */
typedef const char *sort_text(const void *context, uint32_t index, size_t *ret_length);

/* Sorts `n` indices by the bytes of texts, as text_compare() does. Names of tensors begin alike, and comparing them
 * costs what it takes to come to where they differ: here eight bytes of all are compared at a time, as numbers, and
 * only those that are equal go on. Bentley and Sedgewick, Fast algorithms for sorting and searching strings, 1997, with
 * eight bytes for a character, and with runs merged instead of a partition, which keeps what is sorted and has no bad
 * case. */
void sort_texts(uint32_t *indices, size_t n, sort_text *text, const void *context);
