/* Weights as bitsandbytes quantizes them. Expected values: bitsandbytes 0.50.2 on a CPU. */
#include "quant/pack/bitsandbytes.h"
#include "base/little_endian.h"

#include "tests/unit/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 151, BYTES = 76, BLOCKS = 3 };

static struct arena *arena;

/* Three blocks, of which the last is short, with an odd number of values. */
static const struct view *make_weight(void)
{
    static float values[N];
    static const uint64_t shape[] = {1, N};
    for (int i = 0; i < N; i++)
        values[i] = (float)(i * 37 % 101 - 50) / 16 * (i < 64 ? 1 : 0x1p-10f);
    values[5] = 0;
    values[70] = -0.0f;
    return view_numbers(arena, 2, shape, values);
}

/* Reads a view whole, and in pieces of every size. */
static void check_bytes(const struct view *view, const void *expected, size_t n_bytes)
{
    uint8_t found[128];
    struct error error;
    size_t unit = view->dtype->block_bytes;
    CHECK(view_bytes(view) == n_bytes && view_read(view, 0, view_units(view), found, &error));
    CHECK(memcmp(found, expected, n_bytes) == 0);
    for (uint64_t step = 1; step < view_units(view); step++)
        for (uint64_t first = 0; first < view_units(view); first += step) {
            uint64_t count = view_units(view) - first < step ? view_units(view) - first : step;
            CHECK(view_read(view, first, count, found, &error));
            CHECK(memcmp(found, (const uint8_t *)expected + first * unit, count * unit) == 0);
        }
}

static void check_4bit(void)
{
    static const uint8_t nf4[BYTES] = {4,   193, 103, 41,  243, 176, 93,  23,  226, 159, 60,  5,   209, 142, 42,  244,
                                       193, 110, 24,  227, 176, 93,  23,  226, 159, 59,  5,   209, 142, 42,  244, 193,
                                       109, 24,  227, 112, 76,  23,  226, 159, 59,  5,   209, 126, 42,  244, 192, 109,
                                       24,  226, 160, 76,  22,  226, 159, 59,  5,   209, 126, 41,  243, 192, 93,  24,
                                       226, 175, 76,  22,  225, 142, 59,  5,   209, 126, 41,  247},
                         fp4[BYTES] = {191, 90,  144, 166, 60,  75,  229, 160, 45,  99,  196, 190, 42,  18,  215, 63,
                                       90,  146, 166, 61,  75,  245, 169, 45,  99,  196, 190, 90,  18,  215, 60,  91,
                                       226, 166, 61,  11,  245, 169, 45,  99,  196, 190, 90,  18,  215, 60,  91,  226,
                                       161, 45,  123, 245, 169, 42,  99,  196, 190, 90,  2,   214, 60,  75,  226, 161,
                                       45,  115, 245, 169, 42,  99,  212, 191, 90,  146, 214, 48};
    float maxima[BLOCKS] = {3.125f, 0x1.9p-9f, 0x1.9p-9f};
    little_endian(maxima, BLOCKS, sizeof *maxima);
    const struct view *weight = make_weight();
    check_bytes(view_bnb_codes(arena, weight, bnb_nf4_levels), nf4, sizeof nf4);
    check_bytes(view_bnb_codes(arena, weight, bnb_fp4_levels), fp4, sizeof fp4);
    check_bytes(view_bnb_maxima(arena, weight), maxima, sizeof maxima);
}

/* A row with a value that F16 rounds, and one of zeros. */
static void check_8bit(void)
{
    enum { ROWS = 3, COLUMNS = 9 };
    static const int8_t codes[ROWS * COLUMNS] = {-127, 13, -103, 37, -79, 61, -56, 85, -32,
                                                 10,   -1, -12,  1,  127, 4,  -7,  6,  -5};
    float maxima[ROWS] = {3, 1, 0};
    static const uint64_t shape[] = {ROWS, COLUMNS};
    static float values[ROWS * COLUMNS];
    for (int i = 0; i < 2 * COLUMNS; i++)
        values[i] = (float)(i * 53 % 97 - 48) / 64 * (i < COLUMNS ? 4 : 0.125f);
    values[COLUMNS + 4] = 1.0001f;
    little_endian(maxima, ROWS, sizeof *maxima);
    const struct view *matrix = view_numbers(arena, 2, shape, values);
    check_bytes(view_bnb_rows(arena, matrix), codes, sizeof codes);
    check_bytes(view_bnb_row_maxima(arena, matrix), maxima, sizeof maxima);
}

/* torch finds NaN above every boundary, and a row with infinity has no other value. */
static void check_not_finite(void)
{
    static const uint64_t shape[] = {2, 2};
    static const float nan[] = {1, NAN, 1, 1}, infinite[] = {INFINITY, 1, NAN, 1};
    static const uint8_t highest[] = {0xff, 0xff};
    static const int8_t zeros[4] = {0};
    check_bytes(view_bnb_codes(arena, view_numbers(arena, 2, shape, nan), bnb_nf4_levels), highest, 2);
    check_bytes(view_bnb_rows(arena, view_numbers(arena, 2, shape, infinite)), zeros, sizeof zeros);
}

static const char *spell(double value, char out[BNB_SPELLED])
{
    snprintf(out, BNB_SPELLED, "%.16g", value);
    return out;
}

/* The kernel of bitsandbytes for 300 numbers less their mean in F32, and its levels. */
static void check_nested(void)
{
    enum { MAXIMA = 300 };
    static const uint64_t shape[] = {MAXIMA};
    static const uint8_t first[] = {0, 52, 218, 14, 79, 232, 28, 193}, across[] = {7, 59, 226, 20, 170, 240};
    float largest[] = {3.131666660308838f, 3.069166660308838f};
    static const char text[] = "{\"x\": 3.180833339691162}       ";
    float levels[BNB_NESTED_LEVELS], values[MAXIMA];
    uint8_t codes[MAXIMA];
    struct error error;
    uint64_t sum = 0;
    for (int i = 0; i < MAXIMA; i++)
        values[i] = (float)(i * 37 % 101 + 1) / 16;
    bnb_nested_levels(levels);
    CHECK(levels[0] == -0.992968738079071f && levels[63] == -0.10703125596046448f &&
          levels[126] == -5.500000384017767e-07f);
    CHECK(levels[127] == 0 && levels[200] == 0.23359374701976776f && levels[254] == -levels[0] && levels[255] == 1);
    struct bnb_nested *nested = bnb_nested_new(arena, view_numbers(arena, 1, shape, values), levels);
    const struct view *view = view_bnb_nested_codes(arena, nested);
    CHECK(view_read(view, 0, MAXIMA, codes, &error));
    for (unsigned i = 0; i < MAXIMA; i++)
        sum += (uint64_t)codes[i] * (i + 1);
    CHECK(memcmp(codes, first, sizeof first) == 0 && memcmp(codes + 254, across, sizeof across) == 0 && sum == 5757076);
    CHECK(view_read(view, 254, sizeof across, codes, &error) && memcmp(codes, across, sizeof across) == 0);
    little_endian(largest, 2, sizeof *largest);
    check_bytes(view_bnb_nested_maxima(arena, nested), largest, sizeof largest);
    view = view_bnb_nested_text(arena, nested, "{\"x\": ", spell);
    CHECK(view_bytes(view) == sizeof text - 1);
    check_bytes(view, text, sizeof text - 1);
    memset(values, 0, sizeof values);
    nested = bnb_nested_new(arena, view_numbers(arena, 1, shape, values), levels);
    memset(codes, 1, sizeof codes);
    CHECK(view_read(view_bnb_nested_codes(arena, nested), 0, MAXIMA, codes, &error) && codes[0] == 0 &&
          codes[299] == 0);
}

int main(void)
{
    arena = arena_new();
    check_4bit();
    check_8bit();
    check_not_finite();
    check_nested();
    arena_free(arena);
    return check_done();
}
