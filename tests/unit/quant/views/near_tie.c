/* Near ties: blocks that ggml makes on ARM (tests/data/make_contracted.py), altered blocks, and distances. */
#include "quant/views/near_tie.h"

#include "base/little_endian.h"
#include "quant/views/convert.h"
#include "tests/unit/check.h"
#include "tests/unit/quant/data.h"

#include <math.h>

enum { MOST_VALUES = 1024 };

static bool is_near(const struct view *view, struct encoding target, uint64_t block, const void *found)
{
    struct error error;
    bool near = false;
    return near_tie(view, target, block, found, &near, &error) && near;
}

/* Counts the bits of a block that can be flipped and leave a near tie. */
static unsigned accepted_flips(const struct view *view, struct encoding target, const unsigned char *block)
{
    unsigned char flipped[512];
    unsigned n_accepted = 0;
    for (unsigned bit = 0; bit < 8U * target.dtype->block_bytes; bit += 53) {
        memcpy(flipped, block, target.dtype->block_bytes);
        flipped[bit / 8] ^= (unsigned char)(1U << bit % 8);
        n_accepted += is_near(view, target, 0, flipped);
    }
    return n_accepted;
}

static void test_contracted(const char *name, const char *type)
{
    static unsigned char values[2 * MOST_VALUES], found[4 * MOST_VALUES], own[4 * MOST_VALUES];
    struct arena *arena = arena_new();
    struct error error;
    struct encoding target = encoding_of(dtype_by_name(type));
    uint64_t n_values = read_data("contracted", name, "f16", values, sizeof values) / 2;
    size_t length = read_data("contracted", name, "blocks", found, sizeof found), size = target.dtype->block_bytes;
    const struct view *view = view_literal(arena, &f16_dtype, 1, &n_values, values);
    uint64_t n_blocks = n_values / target.dtype->block_elements, n_near = 0, n_equal = 0;
    CHECK_NAMED(n_blocks > 0 && length == n_blocks * size, name);
    CHECK(convert_read(view, target, 0, n_blocks, own, &error));
    for (uint64_t i = 0; i < n_blocks; i++) {
        n_equal += memcmp(own + i * size, found + i * size, size) == 0;
        n_near += is_near(view, target, i, found + i * size);
    }
    CHECK_NAMED(n_equal == 0, "every block differs from that of x86-64");
    CHECK_NAMED(n_near == n_blocks, name);
    CHECK_NAMED(accepted_flips(view, target, found) == 0, "no flipped bit is a near tie");
    arena_free(arena);
}

/* The mean square of a row counts, and the importance of its columns. */
static void test_weighted(void)
{
    enum { COLUMNS = 512 };
    static float values[2 * COLUMNS], columns[COLUMNS];
    struct arena *arena = arena_new();
    struct error error;
    unsigned char block[512];
    struct encoding target = encoding_of(dtype_by_name("IQ4_XS")), plain = target;
    for (unsigned i = 0; i < 2 * COLUMNS; i++) {
        values[i] = sinf((float)i * (float)i) * (1 + (float)(i / COLUMNS));
        columns[i % COLUMNS] = (float)(1 + i % 11 * i % 13);
    }
    target.importance = columns;
    const struct view *view = view_numbers(arena, 2, (uint64_t[]){2, COLUMNS}, values);
    CHECK(convert_read(view, target, 3, 1, block, &error) && is_near(view, target, 3, block));
    CHECK(!is_near(view, plain, 3, block) && !is_near(view, target, 2, block));
    arena_free(arena);
}

/* Elements that are computed may differ in their last bits; those that are stored in fewer bits, at their ties. */
static void test_elements(void)
{
    struct arena *arena = arena_new();
    const float values[] = {1, -0.5F, 0, 1 + 0x1p-11F};
    float found[] = {1 + 0x1p-22F, -0.5F - 0x1p-12F, 0x1p-149F, 0};
    unsigned char low[] = {0x00, 0x3c}, high[] = {0x01, 0x3c}, other[] = {0x02, 0x3c};
    little_endian(found, 4, sizeof *found);
    struct encoding same = encoding_of(&f32_dtype), half = encoding_of(&f16_dtype);
    const struct view *view = view_numbers(arena, 1, (uint64_t[]){4}, values);
    CHECK(is_near(view, same, 0, &found[0]) && !is_near(view, same, 1, &found[1]) &&
          !is_near(view, same, 2, &found[2]));
    CHECK(is_near(view, half, 3, low) && is_near(view, half, 3, high) && !is_near(view, half, 3, other));
    CHECK(!is_near(view, half, 0, high));
    found[0] = NAN;
    little_endian(found, 1, sizeof *found);
    CHECK(!is_near(view, same, 0, &found[0]));
    arena_free(arena);
}

static void test_distance(void)
{
    const unsigned char q8_0[34] = {0x00, 0x38, 1, 2, 0xfd}, q8_0_other[34] = {0x00, 0x38, 1, 4, 0xfe}; /* scale 0.5 */
    const unsigned char zero[34] = {0};
    float numbers[] = {2, 3, NAN};
    const struct dtype *type = dtype_by_name("Q8_0");
    little_endian(numbers, 3, sizeof *numbers);
    CHECK(block_distance(type, q8_0, q8_0) == 0 && block_distance(type, q8_0, q8_0_other) == 2);
    CHECK(isinf(block_distance(type, zero, q8_0)) && block_distance(type, zero, zero) == 0);
    CHECK(block_distance(&f32_dtype, &numbers[0], &numbers[1]) == 0.5 &&
          isinf(block_distance(&f32_dtype, &numbers[0], &numbers[2])));
    CHECK(block_distance(&f32_dtype, &numbers[2], &numbers[2]) == 0);
}

int main(void)
{
    static const char *const types[][2] = {{"q4_0", "Q4_0"},    {"q4_k", "Q4_K"},     {"q5_k", "Q5_K"},
                                           {"q6_k", "Q6_K"},    {"iq4_nl", "IQ4_NL"}, {"iq3_s", "IQ3_S"},
                                           {"iq4_xs", "IQ4_XS"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        test_contracted(types[i][0], types[i][1]);
    test_weighted();
    test_elements();
    test_distance();
    return check_done();
}
