/* Rows with new norms: expected values of numpy, in F64 rounded to F32. */
#include "quant/row_norm.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>

enum { WIDE = 20000 }; /* more columns than are read at once */

static void check_small(struct arena *arena)
{
    static const float values[] = {3, 4, 5, 12, -8, 15}, norms[] = {10, 26, 0};
    static const float expected[] = {6, 8, 10, 24, -0.0f, 0};
    static const uint64_t shape[] = {3, 2};
    const struct view *view =
        view_with_row_norms(arena, view_numbers(arena, 2, shape, values), view_numbers(arena, 1, shape, norms));
    struct error error;
    for (uint64_t first = 0; first < 6; first++)
        for (uint64_t count = 1; first + count <= 6; count++) {
            float read[6];
            CHECK(read_numbers(view, first, count, read, &error));
            for (uint64_t i = 0; i < count; i++)
                CHECK(read[i] == expected[first + i]);
        }
}

/* All rows are alike: each element is the norm divided by the root of the number of columns. */
static void check_wide(struct arena *arena)
{
    static const float norms[] = {200, 100};
    static const uint64_t shape[] = {2, WIDE};
    float *ones = arena_array(arena, 2 * WIDE, sizeof *ones), read[2];
    struct error error;
    for (size_t i = 0; i < 2 * WIDE; i++)
        ones[i] = 1;
    const struct view *view =
        view_with_row_norms(arena, view_numbers(arena, 2, shape, ones), view_numbers(arena, 1, shape, norms));
    CHECK(read_numbers(view, WIDE - 1, 2, read, &error));
    CHECK(fabsf(read[0] - 1.41421354f) < 1e-6f && fabsf(read[1] - 0.707106769f) < 1e-6f);
}

int main(void)
{
    struct arena *arena = arena_new();
    check_small(arena);
    check_wide(arena);
    arena_free(arena);
    return check_done();
}
