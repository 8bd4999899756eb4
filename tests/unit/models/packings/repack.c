/* Blocks of packed weights decode to just what the formula gives, and what they cannot say is refused. */
#include "models/packings/packed.h"

#include "base/little_endian.h"
#include "quant/views/convert.h"
#include "tests/unit/check.h"

enum { ROWS = 3, COLUMNS = 128, GROUP = 64, GROUPS = COLUMNS / GROUP };

static const uint64_t of_codes[2] = {ROWS, COLUMNS}, of_groups[2] = {ROWS, GROUPS}, of_columns[1] = {COLUMNS};
static unsigned char codes[ROWS * COLUMNS], zeros[ROWS * GROUPS];
static float scales[ROWS * GROUPS], offsets[ROWS * GROUPS];
static int32_t groups[COLUMNS];

static struct repacking make(struct arena *arena, unsigned bits, bool has_offsets)
{
    for (unsigned i = 0; i < ROWS * COLUMNS; i++)
        codes[i] = (unsigned char)(i * 37 % (1u << bits));
    for (unsigned i = 0; i < COLUMNS; i++)
        groups[i] = (int32_t)(i / GROUP);
    little_endian(groups, COLUMNS, sizeof *groups);
    for (unsigned i = 0; i < ROWS * GROUPS; i++) {
        scales[i] = (float)(1 + i) / 16;
        offsets[i] = (float)i / 8 - 1;
        zeros[i] = 7;
    }
    const struct view *views[] = {view_numbers(arena, 2, of_groups, scales),
                                  view_numbers(arena, 2, of_groups, offsets)};
    return (struct repacking){
        .codes = view_literal(arena, &u8_dtype, 2, of_codes, codes),
        .scales = view_convert(arena, views[0], &f16_dtype),
        .offsets = has_offsets ? view_convert(arena, views[1], &f16_dtype) : NULL,
        .bits = bits,
        .group_size = GROUP,
        .zeros = view_literal(arena, &u8_dtype, 2, of_groups, zeros),
        .zero = 7,
        .groups = view_literal(arena, dtype_by_name("I32"), 1, of_columns, groups),
    };
}

static void decodes(struct arena *arena, unsigned bits, bool has_offsets, const char *name)
{
    float values[ROWS * COLUMNS];
    struct error error;
    const struct repacking repacking = make(arena, bits, has_offsets);
    const struct view *view = view_of_repacked(arena, &repacking);
    if (!CHECK(view != NULL))
        return;
    CHECK_TEXT(view->dtype->name, name);
    CHECK(view_repacked_holds(view));
    bool good = convert_values(view, 0, ROWS * COLUMNS, values, &error);
    for (int i = 0; good && i < ROWS * COLUMNS; i++) {
        float scale = scales[i / GROUP], middle = (float)(1 << (bits - 1));
        good &= values[i] == (has_offsets ? codes[i] * scale + offsets[i / GROUP] : (codes[i] - middle) * scale);
    }
    CHECK_NAMED(good, name);
}

static void refusals(struct arena *arena)
{
    unsigned char block[18];
    struct error error;
    struct repacking repacking = make(arena, 4, false);
    const struct view *view = view_of_repacked(arena, &repacking);
    zeros[GROUPS] = 6;
    CHECK(view_read(view, 0, 1, block, &error));
    CHECK(!view_read(view, COLUMNS / 32, 1, block, &error) && !view_repacked_holds(view));
    CHECK_TEXT(error.message, "row 1 has the zero point 6, but repacked blocks need 7");
    zeros[GROUPS] = 7;
    groups[5] = 1;
    CHECK(!view_read(view, 0, 1, block, &error) && !view_repacked_holds(view));
    CHECK_TEXT(error.message, "column 5 is not in group 0, where repacked blocks need it");
    repacking.group_size = 16;
    CHECK_NAMED(view_of_repacked(arena, &repacking) == NULL, "groups smaller than a block");
    repacking = make(arena, 3, false);
    CHECK_NAMED(view_of_repacked(arena, &repacking) == NULL, "three bits");
    repacking = make(arena, 8, true);
    CHECK_NAMED(view_of_repacked(arena, &repacking) == NULL, "bytes with offsets");
    repacking = make(arena, 4, false);
    repacking.scales = view_convert(arena, repacking.scales, &bf16_dtype);
    CHECK_NAMED(view_of_repacked(arena, &repacking) == NULL, "scales that F16 cannot hold");
}

int main(void)
{
    struct arena *arena = arena_new();
    decodes(arena, 4, false, "Q4_0");
    decodes(arena, 4, true, "Q4_1");
    decodes(arena, 8, false, "Q8_0");
    refusals(arena);
    arena_free(arena);
    return check_done();
}
