#include "quant/arithmetic/torch_functions.h"

#include <stdbool.h>

enum {
    THRESHOLD = 16, /* shorter ranges are sorted by insertion */
    NTH_THRESHOLD = 3,
    PARTIAL_SHARE = 64, /* of torch's topk */
};

static bool before(struct sort_item a, struct sort_item b)
{
    return a.key < b.key;
}

static void swap(struct sort_item *a, struct sort_item *b)
{
    struct sort_item kept = *a;
    *a = *b;
    *b = kept;
}

/* std::__adjust_heap with std::__push_heap: sinks the hole to a leaf, then raises the value from there. */
static void adjust_heap(struct sort_item *heap, size_t hole, size_t n, struct sort_item value)
{
    const size_t top = hole;
    size_t child = hole;
    while (n > 0 && child < (n - 1) / 2) {
        child = 2 * (child + 1);
        if (before(heap[child], heap[child - 1]))
            child--;
        heap[hole] = heap[child];
        hole = child;
    }
    if (n % 2 == 0 && n >= 2 && child == (n - 2) / 2) {
        child = 2 * (child + 1);
        heap[hole] = heap[child - 1];
        hole = child - 1;
    }
    for (size_t parent; hole > top && before(heap[parent = (hole - 1) / 2], value); hole = parent)
        heap[hole] = heap[parent];
    heap[hole] = value;
}

static void make_heap(struct sort_item *heap, size_t n)
{
    for (size_t parent = n / 2; parent-- > 0;)
        adjust_heap(heap, parent, n, heap[parent]);
}

/* std::__pop_heap: the first of the heap of n items goes to *result, whose item is put into the heap. */
static void pop_heap(struct sort_item *heap, size_t n, struct sort_item *result)
{
    struct sort_item value = *result;
    *result = heap[0];
    adjust_heap(heap, 0, n, value);
}

/* std::__heap_select: the first `middle` items, as a heap. */
static void heap_select(struct sort_item *items, size_t middle, size_t n)
{
    make_heap(items, middle);
    for (size_t i = middle; i < n; i++)
        if (before(items[i], items[0]))
            pop_heap(items, middle, &items[i]);
}

static void heap_sort(struct sort_item *items, size_t n)
{
    make_heap(items, n);
    for (; n > 1; n--)
        pop_heap(items, n - 1, &items[n - 1]);
}

static void insertion_sort(struct sort_item *items, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct sort_item item = items[i];
        size_t at = i;
        for (; at > 0 && before(item, items[at - 1]); at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

static void move_median_to_first(struct sort_item *first, struct sort_item *a, struct sort_item *b, struct sort_item *c)
{
    if (before(*a, *b))
        swap(first, before(*b, *c) ? b : before(*a, *c) ? c : a);
    else
        swap(first, before(*a, *c) ? a : before(*b, *c) ? c : b);
}

/* std::__unguarded_partition_pivot: returns where the second part begins. */
static size_t partition(struct sort_item *items, size_t n)
{
    size_t low = 1, high = n;
    move_median_to_first(items, items + 1, items + n / 2, items + n - 1);
    for (;; low++) {
        while (before(items[low], items[0]))
            low++;
        do
            high--;
        while (before(items[0], items[high]));
        if (low >= high)
            return low;
        swap(&items[low], &items[high]);
    }
}

/* Twice the binary logarithm: the depth from which on heaps are used. */
static unsigned depth_of(size_t n)
{
    unsigned depth = 0;
    for (; n > 1; n /= 2)
        depth += 2;
    return depth;
}

static void sort_parts(struct sort_item *items, size_t n, unsigned depth)
{
    for (; n > THRESHOLD && depth > 0; depth--) {
        size_t cut = partition(items, n);
        sort_parts(items + cut, n - cut, depth - 1);
        n = cut;
    }
    if (n > THRESHOLD)
        heap_sort(items, n);
    else
        insertion_sort(items, n);
}

void std_sort(struct sort_item *items, size_t n)
{
    sort_parts(items, n, depth_of(n));
}

void std_sort_split(struct sort_item *items, size_t n, size_t position)
{
    unsigned depth = depth_of(n);
    for (; n > THRESHOLD && depth > 0; depth--) {
        size_t cut = partition(items, n);
        if (position <= cut) {
            n = cut;
        } else {
            items += cut;
            n -= cut;
            position -= cut;
        }
    }
    if (n > THRESHOLD)
        heap_sort(items, n);
    else
        insertion_sort(items, n);
}

/* std::__introselect. */
static void nth_element(struct sort_item *items, size_t n, size_t nth)
{
    unsigned depth = depth_of(n);
    for (; n > NTH_THRESHOLD; depth--) {
        if (depth == 0) {
            heap_select(items, nth + 1, n);
            swap(items, items + nth);
            return;
        }
        size_t cut = partition(items, n);
        if (cut <= nth) {
            items += cut;
            n -= cut;
            nth -= cut;
        } else {
            n = cut;
        }
    }
    insertion_sort(items, n);
}

void std_top(struct sort_item *items, size_t n, size_t k)
{
    if (k <= n / PARTIAL_SHARE)
        heap_select(items, k, n);
    else
        nth_element(items, n, k - 1);
}
