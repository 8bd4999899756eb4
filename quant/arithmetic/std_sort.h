/* The order in which libstdc++ leaves equal elements: std::sort, std::nth_element and std::partial_sort move elements
 * with the same steps as those do, so that the results are theirs also where keys are equal.
 *
 * Keys are compared by <; to sort descending, give complements. Source: GCC, libstdc++-v3/include/bits/stl_algo.h and
 * stl_heap.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
