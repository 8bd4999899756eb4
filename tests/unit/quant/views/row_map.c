/* Rows of several matrices: their order, means and padding. Expected means of all rows: torch.mean(dim=0) of
 * torch 2.9.1 on one thread. */
#include "quant/views/row_map.h"

#include "quant/views/convert.h"
#include "tests/unit/check.h"

#include <string.h>

static const struct view *ramp(struct arena *arena, uint64_t n_rows, uint64_t n_columns, float begin)
{
    const uint64_t shape[] = {n_rows, n_columns};
    float *values = arena_array(arena, n_rows * n_columns, sizeof *values);
    for (uint64_t i = 0; i < n_rows * n_columns; i++)
        values[i] = begin + (float)i;
    return view_numbers(arena, 2, shape, values);
}

static void check_range(const struct view *view, uint64_t first, uint64_t count, const float *expected)
{
    float values[64];
    struct error error;
    CHECK(convert_values(view, first, count, values, &error));
    CHECK(memcmp(values, expected, count * sizeof *values) == 0);
}

static void test_places(struct arena *arena)
{
    const struct view *const tables[] = {ramp(arena, 4, 2, 0), NULL, ramp(arena, 2, 2, 100)};
    static const struct row_place of_mean[] = {{0, 0}, {2, 1}},
                                  places[] = {{0, 1}, {0, 2}, {2, 0}, {ROW_ZERO, 0}, {ROW_MEAN, 0}, {0, 3}, {0, 1}};
    static const struct row_mean mean = {of_mean, 2};
    static const struct row_map map = {places, sizeof places / sizeof *places, &mean, 2};
    static const float expected[] = {2,  3, 4, 5, 100, 101,        0,          0,          51,
                                     52, 6, 7, 2, 3,   165.0F / 7, 171.0F / 7, 165.0F / 7, 171.0F / 7};
    const struct view *view = view_map_rows(arena, &f32_dtype, tables, 3, &map, findings_new(arena));
    CHECK(view->shape[0] == 9 && view->shape[1] == 2);
    for (uint64_t first = 0; first < 18; first++)
        check_range(view, first, 18 - first, expected + first);
    check_range(view, 3, 7, expected + 3);
    view = view_map_rows(arena, &bf16_dtype, tables, 3, &map, findings_new(arena));
    check_range(view, 8, 2, (const float[]){51, 52});
}

static void check_padding(struct arena *arena, const struct dtype *dtype, uint64_t n_rows, uint64_t n_columns,
                          const float first[3], float last)
{
    const uint64_t shape[] = {n_rows, n_columns};
    float *values = arena_array(arena, n_rows * n_columns, sizeof *values), padding[64];
    struct row_place *places = arena_array(arena, n_rows, sizeof *places);
    struct error error;
    for (uint64_t i = 0; i < n_rows * n_columns; i++)
        values[i] = ((float)((i * 7919) % 10007) - 5003) / 16384;
    for (uint64_t i = 0; i < n_rows; i++)
        places[i] = (struct row_place){0, (uint32_t)i};
    const struct view *const table = view_numbers(arena, 2, shape, values);
    const struct row_map map = {places, n_rows, NULL, 1};
    const struct view *view = view_map_rows(arena, dtype, &table, 1, &map, findings_new(arena));
    CHECK(convert_values(view, n_rows * n_columns, n_columns, padding, &error));
    CHECK(padding[0] == first[0] && padding[1] == first[1] && padding[2] == first[2]);
    CHECK(padding[n_columns - 1] == last);
}

static void test_padding(struct arena *arena)
{
    check_padding(arena, &f32_dtype, 100, 64, (const float[]){0x1.5d1eb8p-9F, -0x1.57ae14p-9F, 0x1.1a51ecp-8F},
                  -0x1.0c28f6p-11F);
    check_padding(arena, &bf16_dtype, 40, 32, (const float[]){0x1.4cp-15F, -0x1.5ap-8F, 0x1.34p-8F}, 0x1.0ep-8F);
    check_padding(arena, &f32_dtype, 20, 4, (const float[]){0x1.a84cccp-7F, 0x1.38f334p-5F, 0x1.37999ap-9F},
                  -0x1.12p-5F);
    check_padding(arena, &f32_dtype, 300, 40, (const float[]){0x1.85c7aep-7F, 0x1.070a3ep-11F, -0x1.222fcap-7F},
                  -0x1.77dddep-9F);
}

int main(void)
{
    struct arena *arena = arena_new();
    test_places(arena);
    test_padding(arena);
    arena_free(arena);
    return check_done();
}
