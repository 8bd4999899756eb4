/* Products whose factors are rearranged: the same numbers as the rearranged product, which rearrangement.c compares
 * with numpy. */
#include "models/relation/rearrangement.h"

#include "quant/views/convert.h"
#include "quant/views/product.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <string.h>

enum { ROWS = 6, TERMS = 2, COLUMNS = 12, VALUES = ROWS * COLUMNS };

static const struct {
    const char *notation;
    bool has_form;
} rows[] = {
    {"(group share) c -> (share group) c", true},
    {"c (group share d) -> c (share group d)", true},
    {"i o -> o i", true},
    {"(group share) (half pair) -> (share group) (pair half)", false},
};

static void compare(struct arena *arena, const char *notation, bool has_form)
{
    static const struct axis_size known[] = {
        {.name = "group", .size = 3}, {.name = "half", .size = 2}, {.name = "d", .size = 2}};
    const struct axis_sizes sizes = {known, 3};
    const uint64_t left_shape[2] = {ROWS, TERMS}, right_shape[2] = {TERMS, COLUMNS};
    float left[ROWS * TERMS], right[TERMS * COLUMNS], expected[VALUES], values[VALUES];
    struct error error;
    for (size_t i = 0; i < ROWS * TERMS; i++)
        left[i] = (float)(i * i) - 7;
    for (size_t i = 0; i < TERMS * COLUMNS; i++)
        right[i] = 3 - (float)(i * 5 % 11);
    const struct view *product = view_product(arena, view_numbers(arena, 2, left_shape, left),
                                              view_numbers(arena, 2, right_shape, right)),
                      *made = NULL, *whole = NULL, *a, *b;
    const struct rearrangement *rearrangement = rearrangement_parse(arena, notation, &error);
    if (!CHECK_NAMED(rearrangement != NULL, notation))
        return;
    bool is_made = low_rank_rearrange(arena, rearrangement, FORWARD, &sizes, product, &made);
    if (!CHECK_NAMED(is_made == has_form, notation) || !is_made)
        return;
    CHECK_NAMED(view_factors(made, &a, &b), notation);
    CHECK_NAMED(rearrangement_apply(arena, rearrangement, FORWARD, &sizes, &product, &whole, &error), notation);
    CHECK_NAMED(made->shape[0] == whole->shape[0] && made->shape[1] == whole->shape[1], notation);
    CHECK(read_numbers(whole, 0, VALUES, expected, &error) && read_numbers(made, 0, VALUES, values, &error));
    CHECK_NAMED(memcmp(values, expected, sizeof values) == 0, notation);
}

int main(void)
{
    struct arena *arena = arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        compare(arena, rows[i].notation, rows[i].has_form);
    arena_free(arena);
    return check_done();
}
