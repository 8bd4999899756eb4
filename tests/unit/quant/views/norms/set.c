/* Rows and columns with new norms: expected values of numpy, in F64 rounded to F32. */
#include "quant/views/norms.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>

enum {
    WIDE = 20000, /* more columns than are read at once */
    TALL = 9000,  /* with two columns, more elements than are read at once */
};

static void check_rows(struct arena *arena)
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
static void check_long_rows(struct arena *arena)
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

static void check_columns(struct arena *arena)
{
    static const float values[] = {3, 5, -8, 4, 12, 15}, norms[] = {10, 26, 0};
    static const float expected[] = {6, 10, -0.0f, 8, 24, 0};
    static const uint64_t shape[] = {2, 3}, of_norms[] = {3};
    for (uint64_t first = 0; first < 6; first++)
        for (uint64_t count = 1; first + count <= 6; count++) {
            const struct view *view =
                view_with_column_norms(arena, view_numbers(arena, 2, shape, values),
                                       view_numbers(arena, 1, of_norms, norms), findings_new(arena));
            struct error error;
            float read[6];
            CHECK(read_numbers(view, first, count, read, &error));
            for (uint64_t i = 0; i < count; i++)
                CHECK(read[i] == expected[first + i]);
        }
}

/* All columns are alike: each element is the norm divided by the root of the number of rows. */
static void check_long_columns(struct arena *arena)
{
    static const float norms[] = {200, 100};
    static const uint64_t shape[] = {TALL, 2}, of_norms[] = {2};
    float *ones = arena_array(arena, 2 * TALL, sizeof *ones), read[3];
    struct error error;
    for (size_t i = 0; i < 2 * TALL; i++)
        ones[i] = 1;
    const struct view *view = view_with_column_norms(arena, view_numbers(arena, 2, shape, ones),
                                                     view_numbers(arena, 1, of_norms, norms), findings_new(arena));
    CHECK(read_numbers(view, 8191, 3, read, &error));
    CHECK(fabsf(read[0] - 1.05409255f) < 1e-6f && fabsf(read[1] - 2.1081851f) < 1e-6f && read[2] == read[0]);
}

int main(void)
{
    struct arena *arena = arena_new();
    check_rows(arena);
    check_long_rows(arena);
    check_columns(arena);
    check_long_columns(arena);
    arena_free(arena);
    return check_done();
}
