/* The order of equal elements against libstdc++'s own: the table is made by tests/data/make_sorts.cc. */
#include "quant/arithmetic/torch_functions.h"

#include "tests/unit/check.h"

#include <stdlib.h>

static const struct row {
    unsigned kind;
    uint32_t n;
    size_t k, position;
    uint64_t sorted, split, few, many; /* hashes of indices: of all, and of those before a position, in their order */
} rows[] = {
    {0, 1, 1, 1, 0xaf63bd4c8601b7df, 0xaf63bd4c8601b7df, 0xaf63bd4c8601b7df, 0xaf63bd4c8601b7df},
    {0, 3, 1, 2, 0xd949aa186c0c4928, 0x08328707b4eb6e3a, 0xaf63bd4c8601b7df, 0x08328707b4eb6e3a},
    {0, 16, 1, 6, 0x7c84dc9477851775, 0xa54ac5bf0ea60dde, 0xaf63bd4c8601b7df, 0xa54ac5bf0ea60dde},
    {0, 17, 1, 6, 0x1ada35471726c09f, 0xa54ac5bf0ea60dde, 0xaf63bd4c8601b7df, 0xa54ac5bf0ea60dde},
    {0, 1000, 11, 334, 0xab2526a912ccf371, 0xaa10b023f5303f8d, 0xecd8c408aa696aac, 0x5ef0cd26b47b3afd},
    {0, 20000, 201, 6667, 0x928e100849c94235, 0x91538cc38ab32098, 0xa3e201911fc38f1f, 0x282aef2d5e5cb820},
    {1, 1, 1, 1, 0xaf63bd4c8601b7df, 0xaf63bd4c8601b7df, 0xaf63bd4c8601b7df, 0xaf63bd4c8601b7df},
    {1, 3, 1, 2, 0xd94645186c0967b2, 0x08328607b4eb6c87, 0xaf63bd4c8601b7df, 0x08328607b4eb6c87},
    {1, 16, 1, 6, 0x1db34bb058e8429d, 0xa56cbbbf0ec2e346, 0xaf63bd4c8601b7df, 0xa56cbbbf0ec2e346},
    {1, 17, 1, 6, 0x5bf056603f31ba27, 0xa56950bf0ebff79e, 0xaf63bd4c8601b7df, 0xa56950bf0ebff79e},
    {1, 1000, 11, 334, 0xf4c95c685a61c151, 0xd48369a87f3ddbc8, 0x9204d12a68c6f503, 0xd48369a87f3ddbc8},
    {1, 20000, 201, 6667, 0x2266d3fc1547f39d, 0xd21c69aeeab9222b, 0x3ebe92ae756b55db, 0xd21c69aeeab9222b},
    {2, 1, 1, 1, 0xaf63bd4c8601b7df, 0xaf63bd4c8601b7df, 0xaf63bd4c8601b7df, 0xaf63bd4c8601b7df},
    {2, 3, 1, 2, 0xd94645186c0967b2, 0x08328607b4eb6c87, 0xaf63bd4c8601b7df, 0x08328607b4eb6c87},
    {2, 16, 1, 6, 0x39ab829051285d95, 0xd2abb37b9d70498c, 0xaf63bd4c8601b7df, 0xd2abb37b9d70498c},
    {2, 17, 1, 6, 0x26b13839e77fdd4f, 0xd2abb37b9d70498c, 0xaf63bd4c8601b7df, 0xd2abb37b9d70498c},
    {2, 1000, 11, 334, 0x3ec542a2a82672ad, 0x1567a420fcec9cf9, 0xd1d8494a301e1150, 0x1567a420fcec9cf9},
    {2, 20000, 201, 6667, 0x9880f20c6c5c92fd, 0x13ab5fae8ca83d77, 0x82ccf64c59810a0d, 0x13ab5fae8ca83d77},
    {3, 1, 1, 1, 0xaf63bd4c8601b7df, 0xaf63bd4c8601b7df, 0xaf63bd4c8601b7df, 0xaf63bd4c8601b7df},
    {3, 3, 1, 2, 0xd949aa186c0c4928, 0x08328707b4eb6e3a, 0xaf63bd4c8601b7df, 0x08328707b4eb6e3a},
    {3, 16, 1, 6, 0x7c84dc9477851775, 0xa54ac5bf0ea60dde, 0xaf63c74c8601c8dd, 0x26d652bcc3336ee2},
    {3, 17, 1, 6, 0x93354466f7a37cef, 0x02e5d3976002f0e9, 0xaf63c74c8601c8dd, 0x26cc32bcc32ae3fd},
    {3, 1000, 11, 334, 0x2f7b7ba900357825, 0x12cfee9554335db0, 0x7aad489e5db90ae8, 0xa3bf0fcbde85a651},
    {3, 20000, 201, 6667, 0x3bf17a14b5ed81a5, 0xf9521495f5d12c8a, 0xcfadf0c2c0964fcf, 0xdc82871bacb814a5},
};

/* The same as key() of tests/data/make_sorts.cc: equal keys, a pipe that needs heaps, no order, and one key. */
static uint32_t key(unsigned kind, uint32_t i, uint32_t n)
{
    switch (kind) {
    case 0:
        return i * 7919 % 37;
    case 1:
        return i < n / 2 ? i : n - i;
    case 2:
        return i * 2654435761u >> 12;
    default:
        return 5;
    }
}

static struct sort_item *items_of(const struct row *row)
{
    struct sort_item *items = malloc(row->n * sizeof *items);
    for (uint32_t i = 0; i < row->n; i++)
        items[i] = (struct sort_item){key(row->kind, i, row->n), i};
    return items;
}

static uint64_t hash(const struct sort_item *items, size_t n)
{
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ items[i].index) * 1099511628211u;
    return sum;
}

static int by_index(const void *a, const void *b)
{
    uint32_t first = ((const struct sort_item *)a)->index, second = ((const struct sort_item *)b)->index;
    return (first > second) - (first < second);
}

/* The hash of the first items, and releases all. */
static uint64_t hash_of_first(struct sort_item *items, size_t n)
{
    qsort(items, n, sizeof *items, by_index);
    uint64_t sum = hash(items, n);
    free(items);
    return sum;
}

static void check_row(const struct row *row)
{
    char name[64];
    struct sort_item *sorted = items_of(row), *split = items_of(row), *few = items_of(row), *many = items_of(row);
    snprintf(name, sizeof name, "%u items of kind %u", (unsigned)row->n, row->kind);
    std_sort(sorted, row->n);
    CHECK_NAMED(hash(sorted, row->n) == row->sorted, name);
    free(sorted);
    std_sort_split(split, row->n, row->position);
    CHECK_NAMED(hash_of_first(split, row->position) == row->split, name);
    std_top(few, row->n, row->k);
    CHECK_NAMED(hash_of_first(few, row->k) == row->few, name);
    std_top(many, row->n, row->position);
    CHECK_NAMED(hash_of_first(many, row->position) == row->many, name);
}

/* Splits at each end leave all items. */
static void check_ends(void)
{
    const struct row *last = &rows[sizeof rows / sizeof *rows - 1];
    for (size_t i = 0; i < 2; i++) {
        struct sort_item *items = items_of(last);
        std_sort_split(items, last->n, i * (size_t)last->n);
        qsort(items, last->n, sizeof *items, by_index);
        CHECK(items[0].index == 0 && items[last->n - 1].index == last->n - 1);
        free(items);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i]);
    check_ends();
    return check_done();
}
