/* Rotated views against products with matrices that are written out, read whole and in ranges. */
#include "quant/views/hadamard.h"

#include "quant/views/convert.h"
#include "tests/unit/numbers.h"
#include "tests/unit/quant/levels.h"

#include <math.h>
#include <stdlib.h>

static uint64_t state = 11;

static uint64_t below(uint64_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

/* The sign at [row][column]: the product of the signs of each digit's matrix. */
static double sign_at(enum hadamard kind, uint64_t row, uint64_t column)
{
    double sign = 1;
    unsigned bits = kind == HADAMARD_REGULAR ? 2 : 1;
    for (; row > 0 || column > 0; row >>= bits, column >>= bits) {
        uint64_t r = row & ((1U << bits) - 1), c = column & ((1U << bits) - 1);
        bool is_minus = kind == HADAMARD_REGULAR ? r + c == 3 : r + c == 2;
        sign = is_minus ? -sign : sign;
    }
    return sign; /* of leading zeros, too: [0][0] is 1 in both */
}

static void compare(enum hadamard kind, uint64_t n_rows, uint64_t n_columns, uint64_t size)
{
    struct arena *arena = arena_new();
    struct error error;
    const uint64_t shape[2] = {n_rows, n_columns};
    uint64_t n = n_rows * n_columns;
    float *values = arena_array(arena, n, sizeof *values), *expected = arena_array(arena, n, sizeof *expected),
          *part = arena_array(arena, n, sizeof *part);
    for (uint64_t i = 0; i < n; i++)
        values[i] = ((float)below(33) - 16) / 8; /* sums of these are exact */
    for (uint64_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint64_t k = 0; k < size; k++)
            sum += (double)values[i / size * size + k] * sign_at(kind, k, i % size);
        expected[i] = (float)(sum / sqrt((double)size));
    }
    const struct view *view = view_hadamard(arena, view_numbers(arena, 2, shape, values), kind, size);
    bool same = read_numbers(view, 0, n, part, &error) && memcmp(part, expected, n * sizeof *part) == 0;
    for (int i = 0; i < 100; i++) {
        uint64_t first = below(n), count = 1 + below(n - first);
        same = same && read_numbers(view, first, count, part, &error) &&
               memcmp(part, expected + first, count * sizeof *part) == 0;
    }
    CHECK(same);
    CHECK(view->dtype == &f32_dtype && view->rank == 2 && view->shape[1] == n_columns);
    arena_free(arena);
}

int main(void)
{
    compare(HADAMARD_SYLVESTER, 3, 8, 2);
    compare(HADAMARD_SYLVESTER, 5, 96, 32);
    compare(HADAMARD_SYLVESTER, 2, 512, 512);
    compare(HADAMARD_REGULAR, 7, 12, 4);
    compare(HADAMARD_REGULAR, 4, 512, 256);
    compare(HADAMARD_REGULAR, 40, 320, 64); /* more than is read at once */
    CHECK(hadamard_has_size(HADAMARD_SYLVESTER, 2) && !hadamard_has_size(HADAMARD_SYLVESTER, 12));
    CHECK(!hadamard_has_size(HADAMARD_SYLVESTER, 1) && !hadamard_has_size(HADAMARD_SYLVESTER, 0));
    CHECK(hadamard_has_size(HADAMARD_REGULAR, 256) && !hadamard_has_size(HADAMARD_REGULAR, 128));
    CHECK(!hadamard_has_size(HADAMARD_SYLVESTER, 2 * HADAMARD_MAX_SIZE));
    return check_done();
}
