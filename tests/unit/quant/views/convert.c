/* Conversion: a range is the part of the whole that it is, wherever it is cut; what cannot be, and why; what becomes of
 * a view besides. The values of each dtype are compared in dtypes.c, kernels.c and blocks.c. */
#include "quant/views/convert.h"

#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 12, COLUMNS = 4096, N = ROWS * COLUMNS }; /* of three pieces */

static float *some_values(void)
{
    uint32_t state = 7;
    float *values = malloc(N * sizeof *values);
    for (size_t i = 0; i < N; i++) {
        state = state * 1664525 + 1013904223;
        values[i] = (float)(int32_t)state * 0x1p-31F * (float)(1 + i / COLUMNS);
    }
    return values;
}

/* Parts of a few blocks, and the whole in two, against the whole. */
static void check_ranges(const struct view *view, struct encoding target, const char *name)
{
    struct error error;
    uint64_t n_blocks = view->n_elements / target.dtype->block_elements, state = 5;
    size_t size = target.dtype->block_bytes;
    unsigned char *whole = malloc(n_blocks * size), *part = malloc(n_blocks * size);
    bool good =
        convert_read(view, target, 0, n_blocks, whole, &error) && convert_bytes(view, target.dtype) == n_blocks * size;
    for (unsigned i = 0; good && i < 60; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t first = (state >> 33) % n_blocks, count = 1 + (state >> 20) % (i < 50 ? 9 : n_blocks);
        count = count < n_blocks - first ? count : n_blocks - first;
        good = convert_read(view, target, first, count, part, &error) &&
               memcmp(part, whole + first * size, count * size) == 0;
    }
    CHECK_NAMED(good, name);
    free(whole);
    free(part);
}

static void test_ranges(struct arena *arena, const struct view *view)
{
    static const char *const names[] = {"F16", "BF16", "Q4_0", "Q8_0", "Q4_K", "Q6_K", "IQ4_XS"};
    float *columns = arena_alloc(arena, COLUMNS * sizeof *columns);
    for (size_t i = 0; i < COLUMNS; i++)
        columns[i] = (float)(1 + i % 7);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct encoding target = encoding_of(dtype_by_name(names[i]));
        check_ranges(view, target, names[i]);
        check_ranges(view_convert(arena, view, target.dtype), encoding_of(&f32_dtype), names[i]); /* back */
        target.importance = columns;
        check_ranges(view, target, names[i]); /* some look at the whole row */
    }
}

static void test_refused(struct arena *arena, const struct view *view)
{
    static const uint64_t shape[] = {2, 48}, scalar = 1;
    const struct view *narrow =
        view_reshape(arena, view_slice(arena, view_reshape(arena, view, 1, &(uint64_t){N}), 0, 0, 96, 1), 2, shape);
    const struct dtype *complex = dtype_by_name("C64");
    const struct {
        const struct view *view;
        const char *dtype, *reason;
    } rows[] = {
        {view, "Q4_K", NULL},
        {narrow, "F16", NULL},
        {narrow, "Q4_0", "its row length is not a multiple of 32"},
        {narrow, "Q4_K", "its row length is not a multiple of 256"},
        {view, "IQ2_XXS", "this type needs an importance matrix: -o imatrix=FILE"},
        {view_literal(arena, complex, 1, &scalar, "12345678"), "F32", "its values have no F32 form"},
        {view_literal(arena, complex, 1, &scalar, "12345678"), "C64", NULL},
        {view, "C64", "wfs has no encoder for this type"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *reason = "left alone";
        bool possible = convert_possible(rows[i].view, encoding_of(dtype_by_name(rows[i].dtype)), &reason);
        CHECK(possible == (rows[i].reason == NULL));
        CHECK_TEXT(reason, rows[i].reason != NULL ? rows[i].reason : "left alone");
    }
}

/* Only the range with what has no value in blocks is an error. */
static void test_not_finite(struct arena *arena)
{
    static float values[96];
    const uint64_t n = 96;
    unsigned char block[64];
    uint16_t halves[96];
    struct error error;
    values[40] = NAN;
    values[80] = 1e38F;
    const struct view *view = view_numbers(arena, 1, &n, values);
    const struct encoding q8_0 = encoding_of(dtype_by_name("Q8_0"));
    CHECK(convert_read(view, q8_0, 0, 1, block, &error));
    CHECK(!convert_read(view, q8_0, 1, 1, block, &error));
    CHECK_TEXT(error.message, "a value that is not finite, which Q8_0 cannot store; F32, F16 and BF16 files store it");
    CHECK(!convert_read(view, q8_0, 2, 1, block, &error));
    CHECK_TEXT(
        error.message,
        "a value that is too large for the scale of its block, which Q8_0 cannot store; F32 and BF16 files store it");
    struct encoding named = q8_0;
    named.tensor = "a.weight";
    CHECK(!convert_read(view, named, 1, 1, block, &error));
    CHECK_TEXT(error.message, "tensor 'a.weight' has a value that is not finite, which Q8_0 cannot store; "
                              "F32, F16 and BF16 files store it");
    CHECK(read_numbers(view_convert(arena, view, &f16_dtype), 0, 96, halves, &error));
    CHECK(halves[0] == 0 && (halves[40] & 0x7fff) > 0x7c00 && halves[80] == 0x7c00);
}

static void test_same(struct arena *arena, const struct view *view)
{
    CHECK(view_convert(arena, view, &f32_dtype) == view);
    CHECK(convert_cost(view, encoding_of(&f32_dtype), N) == 0);
    CHECK(convert_cost(view, encoding_of(dtype_by_name("Q4_0")), N / 32) > 0);
}

int main(void)
{
    const uint64_t shape[] = {ROWS, COLUMNS};
    struct arena *arena = arena_new();
    float *values = some_values();
    const struct view *view = view_numbers(arena, 2, shape, values);
    test_ranges(arena, view);
    const uint64_t turned[] = {COLUMNS, ROWS};
    test_ranges(arena, view_transpose(arena, view_reshape(arena, view, 2, turned)));
    test_refused(arena, view);
    test_not_finite(arena);
    test_same(arena, view);
    free(values);
    arena_free(arena);
    return check_done();
}
