/* Unpacking views against the plainest loops that say the same: bit by bit, element by element. Random shapes, read in
 * random ranges, at any alignment. */
#include "quant/views/combine.h"

#include "base/checked.h"
#include "base/little_endian.h"
#include "tests/unit/quant/levels.h"

#include <stdlib.h>

static struct arena *arena;
static uint64_t state = 5;

static uint64_t below(uint64_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

static const struct view *random_leaf(const char *dtype, unsigned rank, const uint64_t *shape)
{
    const struct dtype *type = dtype_by_name(dtype);
    uint64_t n_bytes = type->block_bytes;
    for (unsigned i = 0; i < rank; i++)
        n_bytes *= shape[i];
    unsigned char *bytes = arena_alloc(arena, n_bytes + 1);
    for (uint64_t i = 0; i < n_bytes; i++)
        bytes[i] = (unsigned char)below(256);
    return view_literal(arena, type, rank, shape, bytes);
}

/* Small numbers, none of them 0. */
static const struct view *numbers(unsigned rank, const uint64_t *shape)
{
    uint64_t n = 1;
    for (unsigned i = 0; i < rank; i++)
        n *= shape[i];
    float *values = arena_alloc(arena, (n + 1) * sizeof *values);
    for (uint64_t i = 0; i < n; i++)
        values[i] = ((float)below(1000) - 500.5f) / 7;
    return view_numbers(arena, rank, shape, values);
}

static unsigned char *read_all(const struct view *view)
{
    struct error error;
    unsigned char *bytes = arena_alloc(arena, view_bytes(view) + 1);
    if (!view_read(view, 0, view_units(view), bytes, &error))
        fprintf(stderr, "  %s\n", error.message);
    return bytes;
}

static float *read_floats(const struct view *view)
{
    float *values = (float *)(void *)read_all(view);
    little_endian(values, view->n_elements, sizeof *values);
    return values;
}

/* Reports whether ranges, and runs, are what the whole says. */
static bool ranges_agree(const struct view *view, const unsigned char *whole)
{
    size_t unit = view->dtype->block_bytes;
    unsigned char *part = malloc(view_bytes(view) + 8);
    bool good = true;
    for (int i = 0; i < 60 && view_units(view) > 0; i++) {
        struct error error;
        uint64_t first = below(view_units(view)), count = below(view_units(view) - first) + 1, shift = below(4);
        good &= view_read(view, first, count, part + shift, &error) &&
                memcmp(part + shift, whole + first * unit, count * unit) == 0;
        uint64_t length = below(count) + 1, stride = length + below(count), n_runs = (count - length) / stride + 1;
        const struct runs runs = {first, n_runs, length, stride};
        good &= n_runs * length > view_units(view) || view_read_runs(view, &runs, part, &error);
        for (uint64_t j = 0; j < n_runs && good && n_runs * length <= view_units(view); j++)
            good &= memcmp(part + j * length * unit, whole + (first + j * stride) * unit, length * unit) == 0;
    }
    free(part);
    return good;
}

static bool cuts(const char *dtype, struct fields fields)
{
    unsigned unit = dtype_by_name(dtype)->block_bytes, word_bytes = unit * fields.word_units;
    uint64_t n_words = below(40) + 1, shape[2] = {below(5) + 1, n_words * fields.word_units};
    const struct view *words = random_leaf(dtype, 2, shape), *view = view_fields(arena, words, &fields);
    unsigned char *stored = read_all(words), *out = read_all(view);
    bool good = view->rank == 2 && view->shape[1] == n_words * fields.n_fields;
    for (uint64_t i = 0; i < view->n_elements && good; i++) {
        const unsigned char *word = stored + i / fields.n_fields * word_bytes;
        unsigned value = 0, shift = fields.shifts[i % fields.n_fields];
        for (unsigned bit = 0; bit < fields.bits; bit++)
            value |= (word[(shift + bit) / 8] >> (shift + bit) % 8 & 1u) << bit;
        good = out[i] == value;
    }
    return good && ranges_agree(view, out);
}

static void test_fields(void)
{
    static const struct {
        const char *dtype;
        unsigned bits;
    } words[] = {{"U8", 8}, {"I16", 16}, {"I32", 32}, {"I64", 64}};
    bool good = true;
    for (unsigned i = 0; i < 4; i++)
        for (unsigned bits = words[i].bits > 32 ? 2 : 1; bits <= 8; bits++)
            good &= cuts(words[i].dtype, fields_of_words(words[i].bits, bits));
    CHECK_NAMED(good, "fields of words of 8 to 64 bits");
    good = true;
    for (unsigned bits = 1; bits <= 8; bits++)
        good &= cuts("U8", fields_of_stream(bits));
    CHECK_NAMED(good, "fields of a stream of bytes");
    CHECK(cuts("I32", (struct fields){1, 8, 4, {0, 16, 4, 20, 8, 24, 12, 28}}));
    CHECK(cuts("U8", (struct fields){1, 2, 4, {4, 0}}));
    CHECK(cuts("U8", (struct fields){1, 1, 2, {6}}));
}

/* Many columns at once, gathered. */
static void test_transposed_fields(void)
{
    uint64_t shape[2] = {300, 70};
    const struct fields fields = fields_of_words(32, 4);
    const struct view *codes = view_fields(arena, random_leaf("I32", 2, shape), &fields);
    const struct view *view = view_transpose(arena, codes);
    unsigned char *plain = read_all(codes), *out = read_all(view);
    bool good = true;
    for (uint64_t i = 0; i < view->n_elements; i++)
        good &= out[i] == plain[i % 300 * 560 + i / 300];
    CHECK_NAMED(good && ranges_agree(view, out), "fields transposed");
    codes = view_fields(arena, view_transpose(arena, random_leaf("I32", 2, shape)), &fields);
    CHECK_NAMED(ranges_agree(codes, read_all(codes)), "fields of transposed words");
}

static void test_reinterpret(void)
{
    static const char *const names[] = {"U8", "I16", "F32", "I64", "F4", "BF16"};
    bool good = true;
    for (unsigned i = 0; i < 36; i++) {
        const struct dtype *to = dtype_by_name(names[i % 6]);
        if (dtype_by_name(names[i / 6])->block_elements > 1)
            continue;
        uint64_t shape[2] = {below(4) + 1, 8 * (below(9) + 1)};
        const struct view *leaf = random_leaf(names[i / 6], 2, shape), *view = view_reinterpret(arena, leaf, to);
        unsigned char *bytes = read_all(leaf);
        good &= view_bytes(view) == view_bytes(leaf) && memcmp(read_all(view), bytes, view_bytes(view)) == 0;
        good &= ranges_agree(view, bytes);
    }
    CHECK_NAMED(good, "the same bytes as units of other sizes");
}

static void test_lookup(void)
{
    uint64_t shape[2] = {9, 4000}, n = 16;
    const struct fields fields = fields_of_words(8, 4);
    const struct view *codes = view_fields(arena, random_leaf("U8", 2, shape), &fields), *table = numbers(1, &n);
    const struct view *view = view_lookup(arena, codes, table);
    unsigned char *plain = read_all(codes), *out = read_all(view);
    const unsigned char *entries = read_all(table);
    bool good = true;
    for (uint64_t i = 0; i < view->n_elements; i++)
        good &= memcmp(out + 4 * i, entries + 4 * plain[i], 4) == 0;
    CHECK_NAMED(good && ranges_agree(view, out), "codes looked up");
}

static float combine(enum combination op, float left, float right)
{
    switch (op) {
    case ADD:
        return left + right;
    case SUBTRACT:
        return left - right;
    case MULTIPLY:
        return left * right;
    default:
        return left / right;
    }
}

/* Matrices of rows x columns in blocks of block[0] x block[1]; the scales for all matrices, or the same for each. */
static bool combines(uint64_t matrices, uint64_t rows, uint64_t columns, const uint64_t *block, bool all,
                     enum combination op)
{
    float zero = (float)below(3) * 8;
    uint64_t shape[3] = {matrices, rows, columns};
    uint64_t shared[3] = {matrices, (rows + block[0] - 1) / block[0], (columns + block[1] - 1) / block[1]};
    const struct view *left = random_leaf("I8", 3, shape);
    const struct view *right = all ? numbers(2, shared + 1) : numbers(3, shared);
    const struct sharing sharing = {block[0], block[1], NULL};
    const struct view *view = zero == 0 ? view_combine(arena, left, op, right, &sharing)
                                        : view_combine_centered(arena, left, zero, op, right, &sharing);
    int8_t *codes = (int8_t *)read_all(left);
    float *scales = read_floats(right), *out = read_floats(view);
    bool good = true;
    for (uint64_t i = 0; i < view->n_elements && good; i++) {
        uint64_t matrix = all ? 0 : i / columns / rows, row = i / columns % rows / block[0],
                 column = i % columns / block[1];
        float expected = combine(op, codes[i] - zero, scales[(matrix * shared[1] + row) * shared[2] + column]);
        good = memcmp(&out[i], &expected, sizeof expected) == 0;
    }
    return good && ranges_agree(view, read_all(view));
}

static void test_combine(void)
{
    static const uint64_t blocks[][2] = {{1, 1},       {1, 16},      {128, 128},        {3, 5},
                                         {1, 1 << 20}, {1 << 20, 1}, {1 << 20, 1 << 20}};
    bool good = true;
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++)
        for (enum combination op = ADD; op <= DIVIDE; op++) {
            good &= combines(1, below(50) + 1, below(300) + 1, blocks[i], true, op);
            good &= combines(below(4) + 1, below(30) + 1, below(70) + 1, blocks[i], false, op);
            good &= combines(below(4) + 1, below(30) + 1, below(70) + 1, blocks[i], true, op);
        }
    CHECK_NAMED(good, "elements combined with those of blocks");
    CHECK_NAMED(combines(1, 3, 40000, blocks[2], true, MULTIPLY), "rows longer than what is read at once");
    CHECK_NAMED(combines(2, 700, 90, blocks[1], false, MULTIPLY), "many rows");
}

static void store_groups(const int32_t groups[96], int32_t *stored)
{
    memcpy(stored, groups, 96 * sizeof *groups);
    little_endian(stored, 96, sizeof *groups);
}

static void test_groups(void)
{
    uint64_t shape[2] = {20, 96}, shared[2] = {20, 6}, n_columns = 96;
    int32_t groups[96], *stored = arena_alloc(arena, sizeof groups);
    for (unsigned i = 0; i < 96; i++)
        groups[i] = (int32_t)below(12) - 6;
    store_groups(groups, stored);
    const struct view *left = numbers(2, shape), *right = numbers(2, shared);
    const struct view *indices = view_literal(arena, dtype_by_name("I32"), 1, &n_columns, stored);
    const struct sharing sharing = {1, 1, indices};
    const struct view *view = view_combine(arena, left, MULTIPLY, right, &sharing);
    float *a = read_floats(left), *b = read_floats(right), *out = read_floats(view);
    bool good = true;
    for (unsigned i = 0; i < 20 * 96; i++)
        good &= out[i] == a[i] * b[i / 96 * 6 + (unsigned)(groups[i % 96] < 0 ? groups[i % 96] + 6 : groups[i % 96])];
    CHECK_NAMED(good && ranges_agree(view, read_all(view)), "groups in any order, counted from either end");

    for (unsigned i = 0; i < 96; i++)
        groups[i] = (int32_t)(i / 40);
    store_groups(groups, stored);
    out = read_floats(view);
    good = true;
    for (unsigned i = 0; i < 20 * 96; i++)
        good &= out[i] == a[i] * b[i / 96 * 6 + i % 96 / 40];
    CHECK_NAMED(good && ranges_agree(view, read_all(view)), "groups in order");

    struct error error = {0};
    float some[96];
    groups[40] = 6;
    store_groups(groups, stored);
    CHECK(!view_read(view, 0, 96, some, &error));
    CHECK_TEXT(error.message, "column 40 is in group 6, but there are only 6 groups");
    CHECK(view_read(view, 0, 40, some, &error) && view_read(view, 41, 55, some, &error));
    groups[40] = -7;
    store_groups(groups, stored);
    CHECK(!view_read(view, 30, 20, some, &error));
}

static void test_numbers(void)
{
    uint64_t shape[2] = {3, 5}, one[1] = {1};
    const struct view *left = numbers(2, shape), *right = numbers(1, one);
    float *a = read_floats(left), *b = read_floats(right);
    float *divided = read_floats(view_combine_one(arena, left, DIVIDE, right));
    float *less = read_floats(view_combine_number(arena, left, SUBTRACT, 8));
    bool good = true;
    for (unsigned i = 0; i < 15; i++)
        good &= divided[i] == a[i] / b[0] && less[i] == a[i] - 8;
    CHECK_NAMED(good, "one number for all");

    enum { MANY = 40000 };
    const uint64_t many[1] = {MANY};
    const struct view *all = numbers(1, many), *doubled = view_combine_number(arena, all, MULTIPLY, 2);
    float *values = read_floats(all), *twice = read_floats(doubled);
    unsigned char *unaligned = arena_alloc(arena, MANY * sizeof *values + 1);
    struct error error;
    good = view_read(doubled, 0, MANY, unaligned + 1, &error) &&
           memcmp(unaligned + 1, read_all(doubled), sizeof(float[MANY])) == 0;
    for (unsigned i = 0; i < MANY; i++)
        good &= twice[i] == values[i] * 2;
    CHECK_NAMED(good && ranges_agree(doubled, read_all(doubled)), "at any place, in pieces");
}

/* The fast kernels against the portable ones, for counts that leave a rest. */
static bool is_as_portable(enum cpu_level level)
{
    enum { MOST = 67 };
    const struct combine_kernels *portable = combine_kernels_at(CPU_PORTABLE), *fast = combine_kernels_at(level);
    float others[MOST], expected[MOST + 1], values[MOST + 1];
    bool good = true;
    for (unsigned n = 0; n < MOST; n++)
        for (enum combination op = ADD; op <= DIVIDE; op++)
            for (unsigned each = 0; each < 2; each++) {
                for (unsigned i = 0; i <= n; i++) {
                    expected[i] = values[i] = (float)(int)(i * i) / 7 - 20;
                    others[i] = (float)i / 3 - 2.1f;
                }
                if (each) {
                    portable->with_each(op, expected, n, others);
                    fast->with_each(op, values, n, others);
                } else {
                    portable->with_one(op, expected, n, 1.3f);
                    fast->with_one(op, values, n, 1.3f);
                }
                good &= memcmp(expected, values, (n + 1) * sizeof *values) == 0;
            }
    return good;
}

static bool cuts_eights(const struct combine_kernels *kernels, const struct fields *fields)
{
    enum { MOST = 19 };
    unsigned char words[4 * MOST], out[8 * MOST + 1];
    bool good = true;
    for (unsigned i = 0; i < sizeof words; i++)
        words[i] = (unsigned char)below(256);
    for (unsigned n = 0; n <= MOST; n++) {
        memset(out, 0xee, sizeof out);
        kernels->cut_eights(fields, words, n, out);
        for (unsigned i = 0; i < 8 * n; i++)
            good &= out[i] == (read_le(words + i / 8 * 4, 4) >> fields->shifts[i % 8] & ((1u << fields->bits) - 1));
        good &= out[8 * n] == 0xee;
    }
    return good;
}

static void test_levels(void)
{
    static const struct fields fields[] = {{1, 8, 4, {0, 16, 4, 20, 8, 24, 12, 28}},
                                           {1, 8, 4, {0, 4, 8, 12, 16, 20, 24, 28}},
                                           {1, 8, 3, {29, 1, 2, 7, 8, 15, 17, 24}}};
    for (int level = CPU_AVX2; level < CPU_LEVELS; level++) {
        if (!level_runs((enum cpu_level)level, "arithmetic"))
            continue;
        const struct combine_kernels *kernels = combine_kernels_at((enum cpu_level)level);
        bool good = kernels->cut_eights != NULL;
        CHECK_NAMED(is_as_portable((enum cpu_level)level), "arithmetic is as the portable one's");
        for (unsigned i = 0; i < sizeof fields / sizeof *fields && good; i++)
            good = cuts_eights(kernels, &fields[i]);
        CHECK_NAMED(good, "words of eight fields in any order");
    }
}

int main(void)
{
    arena = arena_new();
    test_levels();
    test_fields();
    test_transposed_fields();
    test_reinterpret();
    test_lookup();
    test_combine();
    test_groups();
    test_numbers();
    arena_free(arena);
    return check_done();
}
