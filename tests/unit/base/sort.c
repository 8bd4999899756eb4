/* Sorting of indices against the C library, of sequences that are in order, in runs and in none; equal ones stay in
 * their order. */
#include "base/sort.h"
#include "tests/unit/check.h"

#include <stdlib.h>

enum { MOST = 300 };

static uint64_t state = 5;

static uint32_t below(uint32_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % limit;
}

static int compare_values(const void *context, uint32_t a, uint32_t b)
{
    const uint32_t *values = context;
    return (values[a] > values[b]) - (values[a] < values[b]);
}

static const uint32_t *compared;

static int compare_stably(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    int order = compare_values(compared, *x, *y);
    return order != 0 ? order : (*x > *y) - (*x < *y);
}

static bool is_sorted_as_expected(const uint32_t *values, size_t n)
{
    uint32_t sorted[MOST + 1], expected[MOST + 1];
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = expected[i] = i;
    sorted[n] = expected[n] = 77;
    sort_indices(sorted, n, compare_values, values);
    compared = values;
    qsort(expected, n, sizeof *expected, compare_stably);
    return memcmp(sorted, expected, (n + 1) * sizeof *sorted) == 0;
}

int main(void)
{
    static const uint32_t lengths[] = {1, 2, 3, 7, 40, MOST};
    bool good = true;
    for (size_t n = 0; n <= MOST && good; n++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths && good; i++) {
            uint32_t values[MOST + 1], value = 0;
            for (size_t j = 0; j < n; j++)
                values[j] = value = j % lengths[i] == 0 ? below(50) : value + below(3);
            good = is_sorted_as_expected(values, n);
        }
    CHECK(good);
    return check_done();
}
