#include "base/sort.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

struct sorting {
    sort_compare *compare;
    const void *context;
    uint32_t *starts; /* of the runs, and the end of the last */
    size_t n_runs;
};

static void find_runs(struct sorting *sorting, const uint32_t *indices, size_t n)
{
    sorting->starts[0] = 0;
    sorting->n_runs = 1;
    for (size_t i = 1; i < n; i++)
        if (sorting->compare(sorting->context, indices[i - 1], indices[i]) > 0)
            sorting->starts[sorting->n_runs++] = (uint32_t)i;
    sorting->starts[sorting->n_runs] = (uint32_t)n;
}

static void merge(const struct sorting *sorting, const uint32_t *from, size_t first, size_t middle, size_t end,
                  uint32_t *to)
{
    size_t left = first, right = middle, at = first;
    while (left < middle && right < end)
        if (sorting->compare(sorting->context, from[left], from[right]) <= 0)
            to[at++] = from[left++];
        else
            to[at++] = from[right++];
    memcpy(to + at, from + left, (middle - left) * sizeof *to);
    memcpy(to + at + (middle - left), from + right, (end - right) * sizeof *to);
}

/* Merges neighbours; the last run stays as it is where their number is odd. */
static void merge_pairs(struct sorting *sorting, const uint32_t *from, uint32_t *to)
{
    uint32_t *starts = sorting->starts;
    size_t n_merged = 0, n_runs = sorting->n_runs;
    for (size_t run = 0; run < n_runs; run += 2) {
        size_t first = starts[run], end = starts[run + 2 < n_runs ? run + 2 : n_runs];
        merge(sorting, from, first, starts[run + 1], end, to);
        starts[n_merged++] = (uint32_t)first;
    }
    starts[n_merged] = starts[n_runs];
    sorting->n_runs = n_merged;
}

void sort_indices(uint32_t *indices, size_t n, sort_compare *compare, const void *context)
{
    if (n < 2)
        return;
    struct sorting sorting = {compare, context, memory_alloc((n + 1) * sizeof *sorting.starts), 0};
    uint32_t *other = NULL, *from = indices;
    find_runs(&sorting, indices, n);
    if (sorting.n_runs > 1)
        other = memory_alloc(n * sizeof *other);
    while (sorting.n_runs > 1) {
        uint32_t *to = from == indices ? other : indices;
        merge_pairs(&sorting, from, to);
        from = to;
    }
    if (from != indices)
        memcpy(indices, from, n * sizeof *indices);
    free(other);
    free(sorting.starts);
}
