/* Numbers plus or minus their places, also in ranges and past the ends of I64. */
#include "quant/views/positions.h"

#include "base/little_endian.h"
#include "tests/unit/check.h"

#include <string.h>

enum { N = 3000 };

static int64_t values[N], stored[N], expected[N], read[N];

static void check_times(struct arena *arena, int times)
{
    struct error error;
    const uint64_t shape[] = {N};
    for (int64_t i = 0; i < N; i++)
        expected[i] = (int64_t)((uint64_t)values[i] + (uint64_t)(times * i));
    little_endian(expected, N, sizeof *expected);
    const struct view *view = view_add_place(arena, view_literal(arena, &i64_dtype, 1, shape, stored), times);
    CHECK(view_read(view, 0, N, read, &error) && memcmp(read, expected, sizeof read) == 0);
    CHECK(view_read(view, 1000, 1500, read, &error) && memcmp(read, expected + 1000, 1500 * sizeof *read) == 0);
}

int main(void)
{
    struct arena *arena = arena_new();
    for (int64_t i = 0; i < N; i++)
        values[i] = i * i - 7;
    values[N - 1] = INT64_MAX;
    values[N - 2] = INT64_MIN;
    memcpy(stored, values, sizeof stored);
    little_endian(stored, N, sizeof *stored);
    check_times(arena, 1);
    check_times(arena, -1);
    arena_free(arena);
    return check_done();
}
