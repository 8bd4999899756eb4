/* Views against a model of them: the naive list of which unit of the leaf stands where. Random views of random views,
 * read whole and in ranges, for elements of every size and for blocks. */
#include "quant/views/view.h"

#include "quant/views/convert.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_RANK = 6 };

static uint64_t state = 9;

static uint64_t below(uint64_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

/* A leaf of which every unit is told apart by its bytes, and lies in the source where its number says. */
struct leaf {
    struct view view;
    unsigned char *bytes;
};

static bool leaf_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    (void)error;
    size_t unit = view->dtype->block_bytes;
    memcpy(out, ((const struct leaf *)view)->bytes + first * unit, count * unit);
    return true;
}

static uint64_t leaf_stored(const struct view *view, uint64_t first, struct extent *ret_extent)
{
    *ret_extent = (struct extent){NULL, first * view->dtype->block_bytes};
    return view_units(view) - first;
}

static bool leaf_read_runs(const struct view *view, const struct runs *runs, void *out, struct error *error)
{
    for (uint64_t i = 0; i < runs->count; i++)
        if (!leaf_read(view, runs->first + i * runs->stride, runs->length,
                       (unsigned char *)out + i * runs->length * view->dtype->block_bytes, error))
            return false;
    return true;
}

/* With a way to read many runs at once, and without. */
static const struct view_op leaf_ops[] = {
    {.name = "leaf", .read = leaf_read, .stored = leaf_stored, .read_runs = leaf_read_runs},
    {.name = "leaf", .read = leaf_read, .stored = leaf_stored}};

/* A view and what is known of it: its shape in units and, unit by unit, the number of the leaf's. */
struct model {
    const struct view *view;
    uint64_t shape[MOST_RANK], n_units;
    uint64_t *units;
};

static struct arena *arena;

static uint64_t count_units(const struct model *model)
{
    uint64_t n = 1;
    for (unsigned i = 0; i < model->view->rank; i++)
        n *= model->shape[i];
    return n;
}

/* Takes over the shape of `view` and makes room for the units. */
static struct model model_of(const struct view *view)
{
    struct model model = {.view = view};
    for (unsigned i = 0; i < view->rank; i++)
        model.shape[i] = i + 1 == view->rank ? view->shape[i] / view->dtype->block_elements : view->shape[i];
    model.n_units = count_units(&model);
    model.units = arena_array(arena, model.n_units + 1, sizeof *model.units);
    return model;
}

static void index_of(const struct model *model, uint64_t unit, uint64_t *index)
{
    for (unsigned i = model->view->rank; i-- > 0;) {
        index[i] = unit % model->shape[i];
        unit /= model->shape[i];
    }
}

static uint64_t at(const struct model *model, const uint64_t *index)
{
    uint64_t unit = 0;
    for (unsigned i = 0; i < model->view->rank; i++)
        unit = unit * model->shape[i] + index[i];
    return model->units[unit];
}

static struct model make_leaf(const struct dtype *dtype, unsigned rank, const uint64_t *shape)
{
    struct leaf *leaf = arena_alloc(arena, sizeof *leaf);
    view_init(&leaf->view, arena, &leaf_ops[below(2)], dtype, rank, shape);
    leaf->bytes = arena_alloc(arena, view_units(&leaf->view) * dtype->block_bytes + 1);
    for (uint64_t i = 0; i < view_units(&leaf->view) * dtype->block_bytes; i++)
        leaf->bytes[i] = (unsigned char)below(256);
    struct model model = model_of(&leaf->view);
    for (uint64_t i = 0; i < model.n_units; i++)
        model.units[i] = i;
    return model;
}

static struct model permute(const struct model *of)
{
    unsigned rank = of->view->rank, order[MOST_RANK] = {0},
             movable = of->view->dtype->block_elements == 1 ? rank : rank - 1;
    for (unsigned i = 0; i < rank; i++)
        order[i] = i;
    for (unsigned i = movable; i > 1; i--) {
        unsigned j = (unsigned)below(i), swapped = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swapped;
    }
    bool transpose = movable == rank && rank >= 2 && below(2);
    for (unsigned i = 0; i < rank && transpose; i++)
        order[i] = i + 2 < rank ? i : 2 * rank - 3 - i;
    struct model model = model_of(transpose ? view_transpose(arena, of->view) : view_permute(arena, of->view, order));
    for (uint64_t unit = 0; unit < model.n_units; unit++) {
        uint64_t index[MOST_RANK], from[MOST_RANK];
        index_of(&model, unit, index);
        for (unsigned i = 0; i < rank; i++)
            from[order[i]] = index[i];
        model.units[unit] = at(of, from);
    }
    return model;
}

static struct model slice(const struct model *of)
{
    unsigned axis = (unsigned)below(of->view->rank);
    bool in_blocks = axis + 1 == of->view->rank && of->view->dtype->block_elements > 1;
    uint64_t size = of->shape[axis], first = below(size + 1), step = in_blocks ? 1 : 1 + below(4);
    uint64_t most = (size - first + step - 1) / step, count = most - (most > 1 ? below(most) : 0);
    uint64_t elements = in_blocks ? of->view->dtype->block_elements : 1;
    struct model model = model_of(view_slice(arena, of->view, axis, first * elements, count * elements, step));
    for (uint64_t unit = 0; unit < model.n_units; unit++) {
        uint64_t index[MOST_RANK];
        index_of(&model, unit, index);
        index[axis] = first + index[axis] * step;
        model.units[unit] = at(of, index);
    }
    return model;
}

/* The same view several times, whole or in part, one after the other. */
static struct model concatenate(const struct model *of)
{
    enum { MOST = 4 };
    struct model parts[MOST];
    const struct view *views[MOST];
    size_t n_parts = 1 + below(MOST);
    unsigned axis = (unsigned)below(of->view->rank);
    bool in_blocks = axis + 1 == of->view->rank && of->view->dtype->block_elements > 1;
    uint64_t elements = in_blocks ? of->view->dtype->block_elements : 1, firsts[MOST];
    for (size_t i = 0; i < n_parts; i++) {
        firsts[i] = below(of->shape[axis] + 1);
        uint64_t count = below(of->shape[axis] - firsts[i] + 1);
        parts[i] = model_of(view_slice(arena, of->view, axis, firsts[i] * elements, count * elements, 1));
        views[i] = parts[i].view;
    }
    struct model model = model_of(view_concatenate(arena, views, n_parts, axis));
    for (uint64_t unit = 0; unit < model.n_units; unit++) {
        uint64_t index[MOST_RANK];
        size_t part = 0;
        index_of(&model, unit, index);
        while (index[axis] >= parts[part].shape[axis])
            index[axis] -= parts[part++].shape[axis];
        index[axis] += firsts[part];
        model.units[unit] = at(of, index);
    }
    return model;
}

static struct model stack(const struct model *of)
{
    if (of->view->rank + 1 > MOST_RANK)
        return *of;
    size_t n_parts = 1 + below(3);
    const struct view *views[3] = {of->view, of->view, of->view};
    struct model model = model_of(view_stack(arena, views, n_parts));
    for (uint64_t unit = 0; unit < model.n_units; unit++)
        model.units[unit] = of->units[unit % of->n_units];
    return model;
}

/* All axes but the last become one, or the first of several is split off again. */
static struct model reshape(const struct model *of)
{
    unsigned rank = of->view->rank;
    uint64_t shape[MOST_RANK] = {1, 1};
    for (unsigned i = 0; i + 1 < rank; i++)
        shape[1] *= of->view->shape[i];
    shape[2] = rank > 0 ? of->view->shape[rank - 1] : 1;
    if (shape[1] % 2 == 0 && shape[1] > 0) {
        shape[0] = shape[1] / 2;
        shape[1] = 2;
    }
    struct model model = model_of(view_reshape(arena, of->view, 3, shape));
    memcpy(model.units, of->units, model.n_units * sizeof *model.units);
    return model;
}

static bool units_match(const struct model *model, const struct leaf *leaf, const unsigned char *read, uint64_t first,
                        uint64_t count)
{
    size_t size = leaf->view.dtype->block_bytes;
    for (uint64_t i = 0; i < count; i++)
        if (memcmp(read + i * size, leaf->bytes + model->units[first + i] * size, size) != 0)
            return false;
    return true;
}

static bool reads_right(const struct model *model, const struct leaf *leaf, uint64_t first, uint64_t count)
{
    struct error error;
    size_t size = count * leaf->view.dtype->block_bytes;
    unsigned char *out = memory_alloc(size + 1);
    out[size] = 0x77;
    bool right = view_read(model->view, first, count, out, &error) && out[size] == 0x77 &&
                 units_match(model, leaf, out, first, count);
    free(out);
    return right;
}

/* Each stored run is where the leaf has it, and a view of stored units has one of at least the unit itself. */
static bool stored_right(const struct model *model, const struct leaf *leaf)
{
    for (uint64_t unit = 0; unit < model->n_units; unit++) {
        struct extent extent;
        uint64_t run = view_stored(model->view, unit, &extent);
        if (run == 0 || run > model->n_units - unit)
            return false;
        for (uint64_t i = 0; i < run; i += 1 + run / 16)
            if (extent.offset + i * leaf->view.dtype->block_bytes !=
                model->units[unit + i] * leaf->view.dtype->block_bytes)
                return false;
    }
    struct extent extent;
    return view_stored(model->view, model->n_units, &extent) == 0;
}

static bool check_model(const struct model *model, const struct leaf *leaf)
{
    bool right = model->n_units == view_units(model->view) && reads_right(model, leaf, 0, model->n_units);
    for (int i = 0; i < 12 && right; i++) {
        uint64_t first = below(model->n_units + 1), count = below(model->n_units - first + 1);
        right = reads_right(model, leaf, first, count);
    }
    return right && stored_right(model, leaf);
}

static bool random_views(const struct dtype *dtype)
{
    static struct model (*const operations[])(const struct model *) = {permute, slice, concatenate, stack, reshape};
    uint64_t shape[MOST_RANK];
    unsigned rank = 1 + (unsigned)below(4);
    for (unsigned i = 0; i < rank; i++)
        shape[i] = 1 + below(i + 1 == rank ? 40 : 9);
    shape[rank - 1] *= dtype->block_elements;
    struct model model = make_leaf(dtype, rank, shape);
    const struct leaf *leaf = (const struct leaf *)model.view;
    bool right = true;
    for (int i = 0; i < 4 && right && model.n_units < 200000; i++) {
        model = operations[below(sizeof operations / sizeof *operations)](&model);
        right = check_model(&model, leaf);
    }
    return right;
}

static void small_views(void)
{
    static const char *const names[] = {"U8", "BF16", "F32", "F64", "C128", "Q4_0", "Q8_0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool right = true;
        for (int round = 0; round < 300 && right; round++) {
            arena = arena_new();
            right = random_views(dtype_by_name(names[i]));
            arena_free(arena);
        }
        CHECK_NAMED(right, names[i]);
    }
}

/* More than is read at once around what is wanted: the shapes that a box has to be cut up for. */
static void large_views(void)
{
    static const uint64_t shapes[][3] = {{1, 700, 900}, {1, 3, 100000}, {1, 100000, 3}, {70, 80, 90}, {2, 40000, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < 4; kind++) {
            arena = arena_new();
            struct model leaf = make_leaf(kind % 2 ? dtype_by_name("U16") : &f32_dtype, 3, shapes[i]),
                         model = permute(&leaf);
            model = kind < 2 ? slice(&model) : concatenate(&model);
            char name[96];
            snprintf(name, sizeof name, "%u x %u x %u, permuted and %s", (unsigned)shapes[i][0], (unsigned)shapes[i][1],
                     (unsigned)shapes[i][2], kind < 2 ? "sliced" : "concatenated");
            CHECK_NAMED(check_model(&model, (const struct leaf *)leaf.view), name);
            arena_free(arena);
        }
}

static void strided_repeats(void)
{
    arena = arena_new();
    uint64_t shape[] = {5, 7}, repeated[] = {5, 3, 7}, strides[] = {7, 0, 1};
    struct model leaf = make_leaf(&f32_dtype, 2, shape),
                 model = model_of(view_strided(arena, leaf.view, 3, repeated, 0, strides));
    for (uint64_t unit = 0; unit < model.n_units; unit++)
        model.units[unit] = unit / 21 * 7 + unit % 7;
    CHECK_NAMED(check_model(&model, (const struct leaf *)leaf.view), "each row three times");
    arena_free(arena);
}

static void scalars_and_nothing(void)
{
    arena = arena_new();
    struct error error;
    float three = 3, out = 0;
    const struct view *scalar = view_numbers(arena, 0, NULL, &three);
    uint64_t one[] = {1, 1}, none[] = {4, 0, 3};
    CHECK(view_units(scalar) == 1 && view_row_elements(scalar) == 1 && view_bytes(scalar) == 4);
    CHECK(convert_values(scalar, 0, 1, &out, &error) && out == 3);
    const struct view *row = view_reshape(arena, scalar, 2, one);
    CHECK(convert_values(view_transpose(arena, row), 0, 1, &out, &error) && out == 3);
    const struct view *empty = view_numbers(arena, 3, none, NULL), *parts[] = {empty, empty};
    CHECK(view_units(empty) == 0 && view_read(empty, 0, 0, NULL, &error));
    CHECK(view_units(view_transpose(arena, empty)) == 0);
    CHECK(view_units(view_concatenate(arena, parts, 2, 0)) == 0);
    arena_free(arena);
}

static void add_one_and_double(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = (values[i] + 1) * 2;
}

static void map_and_convert(void)
{
    enum { ROWS = 9, COLUMNS = 2304, ELEMENTS = ROWS * COLUMNS };
    static int16_t stored[ELEMENTS];
    static float mapped[ELEMENTS];
    static unsigned char whole[ELEMENTS * 2], part[ELEMENTS * 2], direct[ELEMENTS * 2];
    arena = arena_new();
    struct error error;
    uint64_t shape[] = {ROWS, COLUMNS};
    for (int i = 0; i < ELEMENTS; i++)
        stored[i] = (int16_t)(i * 37 % 2001 - 1000);
    const struct view *integers = view_of_numbers(arena, dtype_by_name("I16"), 2, shape, stored);
    const struct view *halves = view_map(arena, integers, &f16_dtype, add_one_and_double);
    CHECK(convert_values(halves, 0, ELEMENTS, mapped, &error));
    bool right = true; /* up to 2002 times 2: integers that F16 has */
    for (int i = 0; i < ELEMENTS; i++)
        right &= mapped[i] == (float)((stored[i] + 1) * 2);
    CHECK_NAMED(right, "every element mapped");

    static const char *const names[] = {"Q4_0", "Q8_0", "Q6_K", "BF16", "F32"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct dtype *dtype = dtype_by_name(names[i]);
        if (dtype == &f32_dtype)
            continue;
        uint64_t n_units = ELEMENTS / dtype->block_elements;
        dtype_kernels(dtype).encode(mapped, direct, n_units);
        CHECK(convert_bytes(halves, dtype) == n_units * dtype->block_bytes);
        right = convert_read(halves, encoding_of(dtype), 0, n_units, whole, &error) &&
                memcmp(whole, direct, n_units * dtype->block_bytes) == 0;
        for (int round = 0; round < 50 && right; round++) {
            uint64_t first = below(n_units + 1), count = below(n_units - first + 1);
            right = convert_read(halves, encoding_of(dtype), first, count, part, &error) &&
                    memcmp(part, whole + first * dtype->block_bytes, count * dtype->block_bytes) == 0;
        }
        CHECK_NAMED(right, dtype->name);
    }
    arena_free(arena);
}

/* Elements of blocks, from inside one or from an edge, to inside one or to an edge; nothing after them is written. */
static void convert_to_elements(const struct view *view, const float *expected, uint64_t n_elements)
{
    static float made[16 * 1024 + 1];
    struct error error;
    bool right = true;
    for (int round = 0; round < 200; round++) {
        uint64_t step = round % 2 == 0 ? 256 : 1;
        uint64_t first = below(n_elements / step + 1) * step, count = below((n_elements - first) / step + 1) * step;
        made[count] = 4711;
        right &= convert_values(view, first, count, made, &error) &&
                 memcmp(made, expected + first, count * sizeof *made) == 0 && made[count] == 4711;
    }
    CHECK_NAMED(right, "Q6_K as F32, any elements");
}

/* From blocks to other blocks, whose edges do not meet. */
static void convert_blocks(void)
{
    enum { ELEMENTS = 64 * 256 };
    static float values[ELEMENTS];
    static unsigned char blocks[ELEMENTS * 2], expected[ELEMENTS * 2], made[ELEMENTS * 2];
    arena = arena_new();
    struct error error;
    uint64_t shape[] = {16, 1024};
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = (float)((int)below(2001) - 1000) * 0.001f;
    const struct dtype *q6_k = dtype_by_name("Q6_K"), *q8_0 = dtype_by_name("Q8_0");
    q6_k->kernels[CPU_PORTABLE].encode(values, blocks, ELEMENTS / 256);
    q6_k->kernels[CPU_PORTABLE].decode(blocks, values, ELEMENTS / 256);
    q8_0->kernels[CPU_PORTABLE].encode(values, expected, ELEMENTS / 32);
    const struct view *view = view_literal(arena, q6_k, 2, shape, blocks);
    bool right = true;
    for (int round = 0; round < 100; round++) {
        uint64_t first = below(ELEMENTS / 32 + 1), count = below(ELEMENTS / 32 - first + 1);
        right &= convert_read(view, encoding_of(q8_0), first, count, made, &error) &&
                 memcmp(made, expected + first * 34, count * 34) == 0;
    }
    CHECK_NAMED(right, "Q6_K as Q8_0, any blocks");
    convert_to_elements(view, values, ELEMENTS);
    arena_free(arena);
}

static void refusals(void)
{
    arena = arena_new();
    struct error error;
    const char *reason = NULL;
    unsigned char out[64];
    float values[64] = {[40] = 1e7f};
    uint64_t shape[] = {2, 32}, narrow[] = {4, 16};
    const struct view *view = view_numbers(arena, 2, shape, values);
    CHECK(convert_possible(view, encoding_of(&q4_0_dtype), &reason));
    CHECK(!convert_possible(view_numbers(arena, 2, narrow, values), encoding_of(&q4_0_dtype), &reason));
    CHECK_TEXT(reason, "its row length is not a multiple of 32");
    CHECK(!convert_possible(view, encoding_of(dtype_by_name("Q4_K")), &reason));
    CHECK_TEXT(reason, "its row length is not a multiple of 256");
    CHECK(!convert_possible(view, encoding_of(dtype_by_name("F8_E4M3")), &reason));
    CHECK(!convert_possible(view_literal(arena, dtype_by_name("C64"), 2, narrow, values), encoding_of(&f32_dtype),
                            &reason));
    CHECK(convert_read(view, encoding_of(&q4_0_dtype), 0, 1, out, &error));
    CHECK(!convert_read(view, encoding_of(&q4_0_dtype), 1, 1, out, &error));
    CHECK_TEXT(
        error.message,
        "a value that is too large for the scale of its block, which Q4_0 cannot store; F32 and BF16 files store it");
    values[3] = NAN;
    view = view_numbers(arena, 2, shape, values);
    CHECK(!convert_read(view, encoding_of(&q4_0_dtype), 0, 1, out, &error));
    CHECK_TEXT(error.message, "a value that is not finite, which Q4_0 cannot store; F32, F16 and BF16 files store it");
    values[3] = -INFINITY;
    view = view_numbers(arena, 2, shape, values);
    CHECK(!convert_read(view, encoding_of(&q4_0_dtype), 0, 1, out, &error));
    CHECK(convert_read(view, encoding_of(&f16_dtype), 0, 32, out, &error));
    arena_free(arena);
}

int main(void)
{
    small_views();
    large_views();
    strided_repeats();
    scalars_and_nothing();
    map_and_convert();
    convert_blocks();
    refusals();
    return check_done();
}
