/* Rows scaled for FP8. Expected values: by hand, from the bits of E4M3; tests/interop compares whole models with what
 * TensorRT-LLM wrote. */
#include "quant/pack/scaled_rows.h"

#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>

enum { ROW = 6 };

static const float values[4][ROW] = {
    {448, -224, 1, 0.015625f, 0.001953125f, 0},      /* scale 1: the least normal, the least subnormal */
    {2000, -1300, 600, 37.5f, 0, 1200},              /* limited to 1200 */
    {0, 0, 0, 0, 0, -0.0f},                          /* the least scale */
    {17, 19, 448, 0.0009765625f, 0.0029296875f, 18}, /* halfway: to even */
};

static const float scales[4] = {1, 1200.0f / 448.0f, 1.0f / (448.0f * 512.0f), 1};

static const uint8_t bytes[4][ROW] = {
    {0x7e, 0xf6, 0x38, 0x08, 0x01, 0x00},
    {0x7e, 0xfe, 0x76, 0x56, 0x00, 0x7e},
    {0x00, 0x00, 0x00, 0x00, 0x00, 0x80},
    {0x58, 0x5a, 0x7e, 0x00, 0x02, 0x59},
};

static void compare(const struct view *view, const struct view *view_of_scales)
{
    struct error error;
    float found[4];
    uint8_t read[4 * ROW];
    CHECK(read_numbers(view_of_scales, 0, 4, found, &error));
    for (int i = 0; i < 4; i++)
        CHECK(found[i] == scales[i]);
    for (uint64_t first = 0; first < 4 * ROW; first++)
        for (uint64_t count = 1; first + count <= 4 * ROW; count += 3) {
            CHECK(read_numbers(view, first, count, read, &error));
            CHECK(memcmp(read, (const uint8_t *)bytes + first, count) == 0);
        }
}

int main(void)
{
    struct arena *arena = arena_new();
    struct error error;
    const uint64_t shape[] = {4, ROW};
    const struct view *view = view_numbers(arena, 2, shape, *values);
    const struct view *scaled = view_scaled_rows(arena, view), *of_rows = view_row_scales(arena, view);
    CHECK(scaled->rank == 2 && of_rows->rank == 1 && of_rows->shape[0] == 4);
    compare(scaled, of_rows);

    const float undefined[2][2] = {{NAN, 1}, {2, 1}};
    const uint64_t square[] = {2, 2};
    uint8_t read[4];
    float found[2];
    view = view_numbers(arena, 2, square, *undefined);
    CHECK(read_numbers(view_row_scales(arena, view), 0, 2, found, &error) && isnan(found[0]) && found[1] == 2 / 448.0f);
    CHECK(read_numbers(view_scaled_rows(arena, view), 0, 4, read, &error));
    CHECK((read[0] & 0x7f) == 0x7f && (read[1] & 0x7f) == 0x7f && read[2] == 0x7e && read[3] == 0x76);
    arena_free(arena);
    return check_done();
}
