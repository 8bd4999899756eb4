/* Rearrangements against numpy, in both directions, and notations and shapes that are refused. */
#include "models/relation/rearrangement.h"
#include "models/relation/dimensions.h"
#include "models/relation/elementwise.h"
#include "quant/views/block_views.h"
#include "quant/views/convert.h"
#include "quant/views/norms.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 32, MAX_TENSORS = 3, MAX_SIZES = 5 };

struct sample {
    unsigned rank;
    uint64_t shape[4];
    float values[MAX_VALUES];
};

/* Printed by tests/data/gguf/make_rearranged.py. */
static const struct {
    const char *notation;
    struct {
        const char *name;
        uint64_t size, index;
        bool is_limit;
    } sizes[MAX_SIZES];
    bool is_cut; /* the way back does not know the sizes */
    struct sample from[MAX_TENSORS], to[MAX_TENSORS], back[MAX_TENSORS];
} rows[] = {
#include "rearranged.inc"
};

static const struct view *view_of(struct arena *arena, const struct sample *tensor)
{
    return view_numbers(arena, tensor->rank, tensor->shape, tensor->values);
}

static bool is_tensor(const struct view *view, const struct sample *expected)
{
    float values[MAX_VALUES], value;
    struct error error;
    if (view->rank != expected->rank || memcmp(view->shape, expected->shape, view->rank * sizeof *view->shape) != 0 ||
        !read_numbers(view, 0, view_units(view), values, &error) ||
        memcmp(values, expected->values, view_units(view) * sizeof *values) != 0)
        return false;
    for (uint64_t i = 0; i < view_units(view); i++) /* any element by itself */
        if (!read_numbers(view, i, 1, &value, &error) || value != expected->values[i])
            return false;
    return true;
}

static void check_direction(struct arena *arena, size_t row, const struct rearrangement *rearrangement,
                            enum direction direction)
{
    struct axis_size sizes[MAX_SIZES];
    struct axis_sizes known = {sizes, 0};
    const struct view *from[AXES_MAX_TENSORS], *to[AXES_MAX_TENSORS];
    const struct sample *sources = direction == FORWARD ? rows[row].from : rows[row].to,
                        *expected = direction == FORWARD ? rows[row].to : rows[row].back;
    struct error error;
    for (; known.n_sizes < MAX_SIZES && rows[row].sizes[known.n_sizes].name != NULL; known.n_sizes++)
        sizes[known.n_sizes] =
            (struct axis_size){rows[row].sizes[known.n_sizes].name, rows[row].sizes[known.n_sizes].size,
                               rows[row].sizes[known.n_sizes].index, rows[row].sizes[known.n_sizes].is_limit};
    if (direction == BACKWARD && rows[row].is_cut)
        known.n_sizes = 0;
    for (unsigned i = 0; i < rearrangement->n_tensors[direction]; i++)
        from[i] = view_of(arena, &sources[i]);
    bool applied = rearrangement_apply(arena, rearrangement, direction, &known, from, to, &error);
    CHECK_NAMED(applied, rows[row].notation);
    for (unsigned i = 0; applied && i < rearrangement->n_tensors[1 - direction]; i++)
        CHECK_NAMED(is_tensor(to[i], &expected[i]), rows[row].notation);
    if (!applied)
        fprintf(stderr, "  %s\n", error.message);
}

static void check_rows(struct arena *arena)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error;
        const struct rearrangement *rearrangement = rearrangement_parse(arena, rows[i].notation, &error);
        CHECK_NAMED(rearrangement != NULL, rows[i].notation);
        check_direction(arena, i, rearrangement, FORWARD);
        check_direction(arena, i, rearrangement, BACKWARD);
    }
}

static const struct {
    const char *notation, *message;
} malformed[] = {
    {"(head c -> c", "'(head c -> c': column 9: expected a name, 1, ... or ("},
    {"(head c", "'(head c': column 1: the group is not closed"},
    {"a b) -> a", "'a b) -> a': column 4: expected a name, 1, ... or ("},
    {"a a -> a", "'a a -> a': column 3: a name comes twice in one tensor"},
    {"(a b a) -> a", "'(a b a) -> a': column 6: a name comes twice in one product"},
    {"(a + ) -> a", "'(a + ) -> a': column 6: a name is missing"},
    {"() a -> a", "'() a -> a': column 2: a name is missing"},
    {"2 a -> a", "'2 a -> a': column 1: expected a name, 1, ... or ("},
    {"a -> b -> c", "'a -> b -> c': column 8: a second ->"},
    {"... a ... -> a", "'... a ... -> a': column 7: ... comes twice"},
    {"... a -> a", "'... a -> a': column 1: some tensors have ... and some have not"},
    {"a # b", "'a # b': column 3: expected a name, 1, ... or ("},
    {"((((((((((a))))))))))", "'((((((((((a))))))))))': column 9: too many groups"},
};

static void check_malformed(struct arena *arena)
{
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        struct error error = {""};
        CHECK_NAMED(rearrangement_parse(arena, malformed[i].notation, &error) == NULL, malformed[i].notation);
        CHECK_TEXT(error.message, malformed[i].message);
    }
}

/* Shapes and sizes that do not go together. */
static const struct {
    const char *notation;
    unsigned rank;
    uint64_t shape[3];
    struct axis_size sizes[3];
    const char *message;
} misfits[] = {
    {"(head half pair) c -> (head pair half) c",
     2,
     {6, 2},
     {{"head", 2}, {"half", 2}},
     "shape [6, 2] does not fit '(head half pair) c' where head 2, half 2"},
    {"(head half pair) c -> (head pair half) c",
     2,
     {6, 2},
     {{"half", 2}},
     "'(head half pair) c -> (head pair half) c' needs the size of head, which is unknown"},
    {"a b -> b a", 1, {6}, {{0}}, "shape [6] does not fit 'a b'"},
    {"a 1 -> a", 2, {6, 2}, {{0}}, "shape [6, 2] does not fit 'a 1' where a 6"},
    {"(a + b) -> a, b", 1, {3}, {{0}}, "shape [3] does not fit '(a + b)'"},
    {"(a + b) -> a, b", 1, {3}, {{"a", 2}, {"b", 2}}, "shape [3] does not fit '(a + b)' where a 2, b 2"},
    {"(padding + row) -> row", 1, {3}, {{"padding", 4}}, "shape [3] does not fit '(padding + row)' where padding 4"},
    {"a b -> b", 2, {3, 2}, {{"a", 3, 3}}, "part 3 of a does not exist: it has 3 parts"},
    {"a -> a copy", 1, {3}, {{0}}, "'a -> a copy' needs the size of copy, which is unknown"},
    {"a -> a copy", 1, {3}, {{"copy", UINT64_C(1) << 63}}, "the result of 'a copy' is too large"},
    {"(a b) -> a b",
     1,
     {4},
     {{"a", UINT64_C(1) << 63}, {"b", 4}},
     "shape [4] does not fit '(a b)' where a 9223372036854775808, b 4"},
    {"... a b -> ... b a", 1, {4}, {{0}}, "shape [4] does not fit '... a b'"},
};

static void check_misfits(struct arena *arena)
{
    static const float values[MAX_VALUES];
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) {
        struct error error = {""};
        struct axis_sizes sizes = {misfits[i].sizes, 0};
        const struct view *from = view_numbers(arena, misfits[i].rank, misfits[i].shape, values), *to[2];
        while (sizes.n_sizes < 3 && misfits[i].sizes[sizes.n_sizes].name != NULL)
            sizes.n_sizes++;
        const struct rearrangement *rearrangement = rearrangement_parse(arena, misfits[i].notation, &error);
        bool applied =
            rearrangement != NULL && rearrangement_apply(arena, rearrangement, FORWARD, &sizes, &from, to, &error);
        CHECK_NAMED(!applied, misfits[i].notation);
        CHECK_TEXT(error.message, misfits[i].message);
    }
}

/* Rows of blocks move as they are; inside of blocks, values do. */
static void check_blocks(struct arena *arena)
{
    enum { ROWS = 4, BLOCK_BYTES = 18 };
    static const uint64_t shape[] = {ROWS, 32};
    static const struct axis_size size = {"half", 2};
    static const struct axis_sizes sizes = {&size, 1};
    const struct dtype *q4_0 = dtype_by_name("Q4_0");
    unsigned char bytes[ROWS * BLOCK_BYTES], moved[ROWS * BLOCK_BYTES];
    const struct view *to;
    struct error error;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    const struct view *from = view_literal(arena, q4_0, 2, shape, bytes);
    const struct rearrangement *rows_moved = rearrangement_parse(arena, "(half pair) c -> (pair half) c", &error);
    CHECK(rearrangement_apply(arena, rows_moved, FORWARD, &sizes, &from, &to, &error) && to->dtype == q4_0);
    CHECK(read_numbers(to, 0, ROWS, moved, &error) &&
          memcmp(moved + BLOCK_BYTES, bytes + 2 * BLOCK_BYTES, BLOCK_BYTES) == 0);
    const struct rearrangement *transposed = rearrangement_parse(arena, "i o -> o i", &error);
    CHECK(rearrangement_apply(arena, transposed, FORWARD, &sizes, &from, &to, &error) && to->dtype == &f32_dtype);
    const struct rearrangement *padded = rearrangement_parse(arena, "row c -> (row + pad) c", &error);
    const struct axis_size pad = {"pad", 2};
    CHECK(rearrangement_apply(arena, padded, FORWARD, &(struct axis_sizes){&pad, 1}, &from, &to, &error) &&
          to->dtype == q4_0 && to->shape[0] == ROWS + 2);
    const struct axis_size odd = {"pad", 3}; /* no whole block */
    const struct rearrangement *wider = rearrangement_parse(arena, "row c -> row (c + pad)", &error);
    CHECK(rearrangement_apply(arena, wider, FORWARD, &(struct axis_sizes){&odd, 1}, &from, &to, &error) &&
          to->dtype == &f32_dtype && to->shape[1] == 35);
}

/* A tensor of no elements is one on the other side, too. */
/* The columns of two rows of NVFP4, 128 each, in 8 runs of `size` whose halves are interleaved: as NVFP4 where runs are
 * groups of 16, as what the values are together with a factor of 4 otherwise. */
static void check_nvfp4(struct arena *arena, uint64_t size, const char *expected_dtype)
{
    enum { ROWS = 2, COLUMNS = 128, BYTES = ROWS * COLUMNS / 64 * 36 };
    static const uint64_t shape[2] = {ROWS, COLUMNS};
    unsigned char blocks[BYTES];
    float decoded[ROWS * COLUMNS], values[ROWS * COLUMNS], moved[ROWS * COLUMNS];
    struct error error;
    for (size_t i = 0; i < BYTES; i++)
        blocks[i] = (unsigned char)(i * 37 + i / 36) & (i % 36 < 4 ? 0x3f : 0xff);
    const struct view *nvfp4 = view_literal(arena, dtype_by_name("NVFP4"), 2, shape, blocks);
    CHECK(convert_values(nvfp4, 0, ROWS * COLUMNS, decoded, &error));
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        values[i] = decoded[i] * 4;
    const struct view *from = view_of_scaled_blocks(arena, nvfp4, view_numbers(arena, 2, shape, values));
    const struct rearrangement *rearrangement = rearrangement_parse(arena, "c (half run d) -> c (run half d)", &error);
    const struct axis_size sizes[] = {{"half", 2, 0, false}, {"d", size, 0, false}};
    const struct axis_sizes known = {sizes, 2};
    const struct view *to;
    CHECK(rearrangement_apply(arena, rearrangement, FORWARD, &known, &from, &to, &error));
    CHECK_TEXT(to->dtype->name, expected_dtype);
    const float *expected = strcmp(expected_dtype, "NVFP4") == 0 ? decoded : values;
    CHECK(convert_values(to, 0, ROWS * COLUMNS, moved, &error));
    for (uint64_t i = 0; i < ROWS * COLUMNS; i++) {
        uint64_t runs = COLUMNS / size / 2, run = i % COLUMNS / size,
                 source = i / COLUMNS * COLUMNS + (run % 2 * runs + run / 2) * size + i % size;
        CHECK(moved[i] == expected[source]);
    }
}

static void check_empty(struct arena *arena)
{
    static const uint64_t shape[] = {0, 4};
    static const float none;
    const struct axis_size sizes[] = {{"head", 2}, {"half", 2}};
    const struct view *from = view_numbers(arena, 2, shape, &none), *to;
    struct error error;
    const struct rearrangement *rotary = rearrangement_parse(arena, "(head half pair) c -> (head pair half) c", &error);
    CHECK(rearrangement_apply(arena, rotary, FORWARD, &(struct axis_sizes){sizes, 2}, &from, &to, &error) &&
          to->n_elements == 0 && to->rank == 2 && to->shape[1] == 4);
}

static void check_size(struct arena *arena)
{
    static const uint64_t shape[] = {12, 2};
    static const float values[24];
    const struct axis_size head = {"head", 3};
    const struct axis_sizes sizes = {&head, 1};
    const struct view *from = view_numbers(arena, 2, shape, values);
    struct error error;
    uint64_t size = 0;
    const struct rearrangement *identity = rearrangement_parse(arena, "(head d) c", &error);
    CHECK(identity->is_identity && rearrangement_size(identity, FORWARD, &sizes, &from, "d", &size, &error) &&
          size == 4);
    CHECK(!rearrangement_size(identity, FORWARD, &sizes, &from, "e", &size, &error));
    CHECK_TEXT(error.message, "'(head d) c' has no e");
}

/* Values by numpy: F16 stays F16 in arithmetic, where 2048 + 1 is 2048. */
/* Expected values: torch 2.9.1, in F32 and F16. */
static void check_factors(struct arena *arena)
{
    static const uint64_t three = 3;
    static const float values[] = {1, 3, -2.5f};
    static const uint16_t halves[] = {0x3c00, 0x4200, 0xc100};
    static const char *const names[] = {"first", "second", "unknown"};
    struct dimensions dimensions = {0};
    struct error error;
    float f32[3];
    uint16_t f16[3];
    dimensions_set_factor(&dimensions, "first", 0.1f);
    dimensions_set_factor(&dimensions, "second", 0.7f);
    const struct view *view =
        elementwise_multiply(arena, &dimensions, FORWARD, view_numbers(arena, 1, &three, values), names, 3);
    CHECK(read_numbers(view, 0, 3, f32, &error));
    CHECK(f32[0] == 0x1.1eb852p-4f && f32[1] == 0x1.ae147cp-3f && f32[2] == -0x1.666666p-3f);
    view = elementwise_multiply(arena, &dimensions, FORWARD, view_of_numbers(arena, &f16_dtype, 1, &three, halves),
                                names, 3);
    CHECK(view->dtype == &f16_dtype && read_numbers(view, 0, 3, f16, &error));
    CHECK(f16[0] == 11387 && f16[1] == 12985 && f16[2] == (uint16_t)-20070);
}

/* Expected values: torch 2.9.1, x - x.mean(). */
static void check_centered(struct arena *arena)
{
    static const struct {
        uint64_t n;
        float first, fourth, last;
    } cases[] = {{5, -0x1.b6db6cp-1f, 0x1.b6db70p-2f, 0x1.6db6dep+0f},
                 {100, -0x1.cd9f70p+2f, -0x1.7b564cp+2f, -0x1.a90d26p+2f},
                 {300, -0x1.cd49a0p+2f, -0x1.7b007cp+2f, -0x1.3b007cp+2f}};
    float values[300], first, fourth, last;
    struct error error;
    for (unsigned i = 0; i < 300; i++)
        values[i] = (float)(i * i % 101 / 7.0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct view *view = view_less_mean(arena, view_numbers(arena, 1, &cases[i].n, values));
        CHECK(read_numbers(view, 0, 1, &first, &error) && read_numbers(view, 3, 1, &fourth, &error) &&
              read_numbers(view, cases[i].n - 1, 1, &last, &error));
        CHECK(first == cases[i].first && fourth == cases[i].fourth && last == cases[i].last);
    }
    const uint64_t none = 0;
    CHECK(view_less_mean(arena, view_numbers(arena, 1, &none, values)) == NULL);
}

static void check_elementwise(struct arena *arena)
{
    static const uint16_t halves[] = {0x6800, 0x3c00, 0x0000};
    static const float values[] = {0, 1, 2, 3},
                       negative[] = {-1.0f, -2.71828174591064453125f, -7.389056205749512f, -0.5f};
    static const uint64_t three = 3, four = 4;
    uint16_t f16[3];
    float f32[4];
    struct error error;
    const struct view *view =
        elementwise_apply(arena, &plus_one, NULL, FORWARD, view_of_numbers(arena, &f16_dtype, 1, &three, halves));
    CHECK(view->dtype == &f16_dtype && read_numbers(view, 0, 3, f16, &error));
    CHECK(f16[0] == 0x6800 && f16[1] == 0x4000 && f16[2] == 0x3c00);
    view = elementwise_apply(arena, &plus_one, NULL, BACKWARD, view_numbers(arena, 1, &four, values));
    CHECK(read_numbers(view, 0, 4, f32, &error) && f32[0] == -1 && f32[3] == 2);
    view = elementwise_apply(arena, &minus_exp, NULL, FORWARD, view_numbers(arena, 1, &four, values));
    CHECK(read_numbers(view, 0, 4, f32, &error));
    CHECK(f32[0] == -1.0f && f32[1] == -2.71828174591064453125f && f32[3] == -20.08553695678710937500f);
    view = elementwise_apply(arena, &minus_exp, NULL, BACKWARD, view_numbers(arena, 1, &four, negative));
    CHECK(read_numbers(view, 0, 4, f32, &error));
    CHECK(f32[0] == 0 && fabsf(f32[1] - 1) < 1.2e-7f && fabsf(f32[2] - 2) < 2.4e-7f &&
          f32[3] == -0.693147182464599609375f);
}

int main(void)
{
    struct arena *arena = arena_new();
    check_rows(arena);
    check_malformed(arena);
    check_misfits(arena);
    check_blocks(arena);
    check_nvfp4(arena, 32, "NVFP4");
    check_nvfp4(arena, 16, "NVFP4");
    check_nvfp4(arena, 8, "F32");
    check_empty(arena);
    check_size(arena);
    check_elementwise(arena);
    check_factors(arena);
    check_centered(arena);
    arena_free(arena);
    return check_done();
}
