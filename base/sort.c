#include "base/sort.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct sorting {
    sort_compare *compare;
    const void *context;
    uint32_t *starts; /* where each run starts, and the end of the last one */
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

/* Merges neighbouring runs; the last run stays as it is if their number is odd. */
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

/* Sorting texts. */

enum { KEY_BYTES = 8, FEW_TEXTS = 16 };

/* Texts with equal bytes up to `depth`, at places [first, first + n). */
struct alike {
    size_t first, n, depth;
    bool may_end; /* a text may end before `depth`: keys do not tell the texts apart */
};

struct text_sorting {
    sort_text *text;
    const void *context;
    uint32_t *indices, *sorted; /* `sorted`: room for as many indices */
    uint32_t *order;            /* places of the texts that are alike, by key */
    uint64_t *keys;             /* for each place, the 8 bytes after `depth` */
    struct alike *left;         /* groups still to sort */
    size_t n_left;
};

static int compare_texts(const void *context, uint32_t a, uint32_t b)
{
    const struct text_sorting *sorting = context;
    size_t length, other_length;
    const char *text = sorting->text(sorting->context, a, &length);
    const char *other = sorting->text(sorting->context, b, &other_length);
    return text_compare(text, length, other, other_length);
}

static int compare_keys(const void *context, uint32_t a, uint32_t b)
{
    const uint64_t *keys = context;
    return (keys[a] > keys[b]) - (keys[a] < keys[b]);
}

/* Reads the next 8 bytes of each text as a number, with zeros after its end. */
static void read_keys(struct text_sorting *sorting, const struct alike *alike)
{
    for (size_t i = 0; i < alike->n; i++) {
        unsigned char bytes[KEY_BYTES] = {0};
        size_t length;
        const char *text = sorting->text(sorting->context, sorting->indices[alike->first + i], &length);
        size_t n_left = length > alike->depth ? length - alike->depth : 0;
        if (n_left > 0)
            memcpy(bytes, text + alike->depth, n_left < KEY_BYTES ? n_left : KEY_BYTES);
        sorting->keys[i] = read_be(bytes, KEY_BYTES);
        sorting->order[i] = (uint32_t)i;
    }
}

/* Sorts by the next 8 bytes, and puts groups of texts with equal bytes on the list of those still to sort. */
static void sort_by_keys(struct text_sorting *sorting, const struct alike *alike)
{
    uint32_t *indices = sorting->indices + alike->first, *order = sorting->order;
    read_keys(sorting, alike);
    sort_indices(order, alike->n, compare_keys, sorting->keys);
    for (size_t i = 0; i < alike->n; i++)
        sorting->sorted[i] = indices[order[i]];
    memcpy(indices, sorting->sorted, alike->n * sizeof *indices);
    for (size_t first = 0, end; first < alike->n; first = end) {
        uint64_t key = sorting->keys[order[first]];
        for (end = first + 1; end < alike->n && sorting->keys[order[end]] == key;)
            end++;
        bool may_end = (key & 0xff) == 0;
        if (end - first > 1)
            sorting->left[sorting->n_left++] =
                (struct alike){alike->first + first, end - first, alike->depth + KEY_BYTES, may_end};
    }
}

static bool is_sorted(const struct text_sorting *sorting, size_t n)
{
    size_t i = 1;
    while (i < n && compare_texts(sorting, sorting->indices[i - 1], sorting->indices[i]) <= 0)
        i++;
    return i >= n;
}

void sort_texts(uint32_t *indices, size_t n, sort_text *text, const void *context)
{
    struct text_sorting sorting = {.text = text, .context = context, .indices = indices};
    if (is_sorted(&sorting, n))
        return;
    sorting.sorted = memory_alloc(n * sizeof *sorting.sorted);
    sorting.order = memory_alloc(n * sizeof *sorting.order);
    sorting.keys = memory_alloc(n * sizeof *sorting.keys);
    sorting.left = memory_alloc((n / 2 + 1) * sizeof *sorting.left);
    sorting.left[sorting.n_left++] = (struct alike){.n = n};
    while (sorting.n_left > 0) {
        struct alike alike = sorting.left[--sorting.n_left];
        if (alike.n < FEW_TEXTS || alike.may_end)
            sort_indices(indices + alike.first, alike.n, compare_texts, &sorting);
        else
            sort_by_keys(&sorting, &alike);
    }
    free(sorting.sorted);
    free(sorting.order);
    free(sorting.keys);
    free(sorting.left);
}
