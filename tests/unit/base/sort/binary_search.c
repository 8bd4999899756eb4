/* The first element that does not come before: at the ends, between elements, and the first of equal ones. */
#include "base/sort.h"
#include "tests/unit/check.h"

struct row {
    const int *sorted;
    int wanted;
};

static bool is_less(const void *context, size_t index)
{
    const struct row *row = context;
    return row->sorted[index] < row->wanted;
}

int main(void)
{
    const int sorted[] = {1, 3, 3, 3, 7};
    const struct {
        size_t n;
        int wanted;
        size_t first;
    } rows[] = {{0, 3, 0}, {1, 0, 0}, {1, 1, 0}, {1, 2, 1}, {5, 0, 0},
                {5, 2, 1}, {5, 3, 1}, {5, 4, 4}, {5, 7, 4}, {5, 8, 5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row row = {sorted, rows[i].wanted};
        CHECK(search_first(rows[i].n, is_less, &row) == rows[i].first);
    }
    return check_done();
}
