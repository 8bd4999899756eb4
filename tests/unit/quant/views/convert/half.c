/* Conversion to F16 with one rounding. Expected values are numpy's: numpy.float64(x).astype(numpy.float16). */
#include "quant/views/convert.h"

#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>

static const struct {
    double value;
    uint16_t half;
} rows[] = {
    {1.0, 0x3c00},
    {1.0 + 0x1p-11, 0x3c00},           /* halfway, to even */
    {1.0 + 0x1p-11 + 0x1p-40, 0x3c01}, /* above halfway, which F32 does not see */
    {1.0 + 3 * 0x1p-11, 0x3c02},       /* halfway, to even */
    {1.0 + 3 * 0x1p-11 - 0x1p-40, 0x3c01},
    {-1.0 - 0x1p-11 - 0x1p-40, 0xbc01},
    {65504.0, 0x7bff},
    {65519.999999999, 0x7bff}, /* F32 has 65520 */
    {65520.0, 0x7c00},
    {1e300, 0x7c00},
    {-1e300, 0xfc00},
    {0x1p-25, 0x0000},
    {0x1p-25 + 0x1p-70, 0x0001},
    {1e-300, 0x0000},
    {-1e-300, 0x8000},
    {0.0, 0x0000},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

int main(void)
{
    struct arena *arena = arena_new();
    struct error error;
    uint64_t shape = N_ROWS;
    double values[N_ROWS];
    uint16_t halves[N_ROWS];
    float singles[2] = {1.0f + 0x1p-11f, 70000.0f};
    for (size_t i = 0; i < N_ROWS; i++)
        values[i] = rows[i].value;
    const struct view *view = view_half(arena, view_of_numbers(arena, &f64_dtype, 1, &shape, values));
    CHECK(view->dtype == &f16_dtype && read_numbers(view, 0, N_ROWS, halves, &error));
    for (size_t i = 0; i < N_ROWS; i++)
        CHECK(halves[i] == rows[i].half);
    CHECK(read_numbers(view, 2, 1, halves, &error) && halves[0] == 0x3c01);
    shape = 2;
    view = view_half(arena, view_numbers(arena, 1, &shape, singles));
    CHECK(read_numbers(view, 0, 2, halves, &error) && halves[0] == 0x3c00 && halves[1] == 0x7c00);
    double nan = NAN;
    shape = 1;
    view = view_half(arena, view_of_numbers(arena, &f64_dtype, 1, &shape, &nan));
    CHECK(read_numbers(view, 0, 1, halves, &error) && (halves[0] & 0x7c00) == 0x7c00 && (halves[0] & 0x3ff) != 0);
    arena_free(arena);
    return check_done();
}
