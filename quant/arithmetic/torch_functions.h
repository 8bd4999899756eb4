/* What torch takes from other libraries, with their results: exp() (exponential.c), random numbers (mersenne.c) and
 * sorting (std_sort.c). */
#pragma once

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

/* The exponential function as torch computes it: MKL's exp() for vectors of F32, on processors not made by Intel.
 *
 * One result in a hundred is not correctly rounded, and the converter's files contain these bits. The steps were found
 * by experiment: they equal torch 2.9.1 (MKL 2024.2, AMD) in 50 million arguments over the whole range, and in all
 * arguments with results near underflow or overflow. */

float exponential(float x);

/* The random numbers of mt19937, from any place in their sequence.
 *
 * A place is reached from the nearest one before it that is kept: one in about four million words, and those where
 * recent reads ended. The first read of a far place takes up to a second for each thousand million words before it.
 * Source: Matsumoto and Nishimura, Mersenne Twister, 1998; the seed is used as by init_genrand(). */

struct mersenne;

/* Returns the sequence of a seed. It may be read by several threads at once. */
struct mersenne *mersenne_new(struct arena *arena, uint32_t seed);

/* Stores words [first, first + n) of the sequence. */
void mersenne_read(struct mersenne *mersenne, uint64_t first, size_t n, uint32_t *words);

/* The order in which libstdc++ leaves equal elements: std::sort, std::nth_element and std::partial_sort move elements
 * with the same steps as those do, so that the results are theirs also where keys are equal.
 *
 * Keys are compared by <; to sort descending, give complements. Source: GCC, libstdc++-v3/include/bits/stl_algo.h and
 * stl_heap.h. */

struct sort_item {
    uint32_t key, index;
};

/* Sorts like std::sort. */
void std_sort(struct sort_item *items, size_t n);

/* Moves the items that std::sort would put before `position` to before it, in any order: in O(n). */
void std_sort_split(struct sort_item *items, size_t n, size_t position);

/* Moves the `k` first items to the front in any order, as torch's topk chooses them: like std::partial_sort if they are
 * at most one in 64, else like std::nth_element. k is from 1 to n. */
void std_top(struct sort_item *items, size_t n, size_t k);
