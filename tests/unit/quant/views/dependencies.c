/* The stored bytes that a range is computed from: for every kind of view, each byte that is read was named before; and
 * what is named besides lies next to it. */
#include "quant/views/dependencies.h"

#include "base/arena.h"
#include "formats/bits.h"
#include "models/packings/packed.h"
#include "quant/merge/merge.h"
#include "quant/pack/scaled_rows.h"
#include "quant/pack/ternary_weights.h"
#include "quant/views/block_views.h"
#include "quant/views/convert.h"
#include "quant/views/norms.h"
#include "quant/views/positions.h"
#include "quant/views/product.h"
#include "quant/views/unpack.h"
#include "sources/source.h"
#include "tests/unit/check.h"

#include <stdlib.h>

enum { ROWS = 300, COLUMNS = 512, MOST_SOURCES = 8, ROUNDS = 12 };

/* A source that knows which of its bytes were named and which were read. */
struct recorded {
    struct source *source;
    unsigned char *bytes, *is_named, *is_read;
    size_t size;
};

static struct recorded recorded[MOST_SOURCES];
static size_t n_recorded;
static struct arena *arena;
static uint64_t state = 11;

static uint64_t below(uint64_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

static bool read_recorded(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    struct recorded *from = context;
    (void)error;
    memset(from->is_read + offset, 1, length);
    memcpy(out, from->bytes + offset, length);
    return true;
}

static void leave(void *context)
{
    (void)context;
}

static struct recorded *record(size_t size)
{
    static const struct source_ops ops = {.read = read_recorded, .release = leave};
    struct recorded *made = &recorded[n_recorded++];
    *made = (struct recorded){NULL, calloc(size, 1), calloc(size, 1), calloc(size, 1), size};
    const struct source_identity identity = {.size = size};
    made->source = source_new_file(&identity, "recorded", &ops, made);
    return made;
}

static void forget_all(void)
{
    while (n_recorded > 0) {
        const struct recorded *last = &recorded[--n_recorded];
        source_close(last->source);
        free(last->bytes);
        free(last->is_named);
        free(last->is_read);
    }
}

/* A tensor of a source of its own: small numbers if F32, else bytes below `limit`. */
static const struct view *tensor(const struct dtype *dtype, unsigned rank, const uint64_t *shape, unsigned limit)
{
    uint64_t n = 1;
    for (unsigned i = 0; i < rank; i++)
        n *= shape[i];
    struct recorded *made = record((size_t)(n / dtype->block_elements * dtype->block_bytes));
    for (size_t i = 0; i < made->size; i++)
        made->bytes[i] = (unsigned char)below(limit);
    for (size_t i = 0; dtype == &f32_dtype && i < n; i++) {
        float value = (float)(i % 97) / 16;
        memcpy(made->bytes + 4 * i, &value, sizeof value);
    }
    return view_of_source(arena, made->source, 0, dtype, rank, shape);
}

static const struct view *matrix(uint64_t n_rows, uint64_t n_columns)
{
    return tensor(&f32_dtype, 2, (const uint64_t[]){n_rows, n_columns}, 256);
}

static const struct view *bytes(uint64_t n_rows, uint64_t n_columns, unsigned limit)
{
    return tensor(&u8_dtype, 2, (const uint64_t[]){n_rows, n_columns}, limit);
}

static void mark_named(void *context, const struct extent *from, uint64_t n_bytes)
{
    bool *inside = context;
    for (size_t i = 0; i < n_recorded; i++)
        if (recorded[i].source == from->source) {
            *inside &= from->offset + n_bytes <= recorded[i].size;
            if (*inside)
                memset(recorded[i].is_named + from->offset, 1, n_bytes);
        }
}

/* Names and reads blocks; reports whether each byte that was read had been named. */
static bool all_named(const struct view *view, struct encoding encoding, uint64_t first, uint64_t count)
{
    bool right = true;
    struct error error;
    struct dependencies to = {.take = mark_named, .context = &right};
    for (size_t i = 0; i < n_recorded; i++) {
        memset(recorded[i].is_named, 0, recorded[i].size);
        memset(recorded[i].is_read, 0, recorded[i].size);
    }
    convert_depends(view, encoding, first, count, &to);
    dependencies_end(&to);
    unsigned char *out = memory_alloc(count * encoding.dtype->block_bytes + 1); /* read at an odd address */
    right = convert_read(view, encoding, first, count, out + 1, &error) && right;
    free(out);
    for (size_t i = 0; i < n_recorded && right; i++)
        for (size_t at = 0; at < recorded[i].size; at++)
            right &= !recorded[i].is_read[at] || recorded[i].is_named[at];
    return right;
}

/* Reports whether each named byte lies less than DEPENDENCY_GAP from one that was read. */
static bool is_near(const struct recorded *source)
{
    size_t last_read = 0, next_read = 0;
    bool has_read = false;
    for (size_t at = 0; at < source->size; at++) {
        if (source->is_read[at])
            last_read = at, has_read = true;
        for (next_read = next_read > at ? next_read : at; next_read < source->size && !source->is_read[next_read];)
            next_read++;
        bool near = (has_read && at - last_read < DEPENDENCY_GAP) ||
                    (next_read < source->size && next_read - at < DEPENDENCY_GAP);
        if (source->is_named[at] && !near)
            return false;
    }
    return true;
}

static void check_encoded(const char *name, const struct view *view, struct encoding encoding)
{
    uint64_t n = view->n_elements / encoding.dtype->block_elements;
    bool named = all_named(view, encoding, 0, n), near = true;
    for (int round = 0; round < ROUNDS && named && near; round++) {
        uint64_t first = below(n), most = n - first < 1000 || round % 3 == 0 ? n - first : 1000;
        named = all_named(view, encoding, first, 1 + below(most));
        for (size_t i = 0; i < n_recorded; i++)
            near &= is_near(&recorded[i]);
    }
    CHECK_NAMED(named, name);
    CHECK_NAMED(near, "nothing far away is named");
    forget_all();
}

static void check(const char *name, const struct view *view)
{
    check_encoded(name, view, encoding_of(view->dtype));
}

static const struct view *permuted(const struct view *of)
{
    static const unsigned order[] = {1, 0, 2};
    const uint64_t shape[] = {4, ROWS / 4, COLUMNS};
    return view_permute(arena, view_reshape(arena, of, 3, shape), order);
}

static void rearranged(void)
{
    check("a tensor", matrix(ROWS, COLUMNS));
    check("transposed", view_transpose(arena, matrix(ROWS, COLUMNS)));
    check("rows that lie far apart", view_slice(arena, matrix(ROWS, COLUMNS), 0, 3, 4, 70));
    check("some columns", view_slice(arena, matrix(ROWS, COLUMNS), 1, 9, 20, 3));
    check("permuted", permuted(matrix(ROWS, COLUMNS)));
    check("a slice of a permuted matrix", view_slice(arena, permuted(matrix(ROWS, COLUMNS)), 0, 2, 5, 11));
    const struct view *parts[] = {matrix(ROWS, COLUMNS), view_transpose(arena, matrix(COLUMNS, ROWS))};
    check("concatenated", view_concatenate(arena, parts, 2, 1));
    parts[0] = matrix(ROWS, COLUMNS);
    parts[1] = view_transpose(arena, view_transpose(arena, matrix(ROWS, COLUMNS)));
    check("stacked", view_stack(arena, parts, 2));
    check("swapped", view_bits(arena, matrix(ROWS, COLUMNS), (struct bits){4, true, true, false}));
}

static void halve(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] /= 2;
}

static void computed(void)
{
    static float importance[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++)
        importance[i] = (float)(1 + i % 5);
    const uint64_t picture[] = {1, 400, 96}, vector[] = {5000};
    struct encoding weighted = encoding_of(dtype_by_name("Q4_0"));
    check_encoded("quantized", matrix(ROWS, COLUMNS), encoding_of(dtype_by_name("Q4_K")));
    check_encoded("of blocks", tensor(dtype_by_name("Q8_0"), 2, (const uint64_t[]){ROWS, COLUMNS}, 40),
                  encoding_of(&f16_dtype));
    check_encoded("a transposed matrix, quantized", view_transpose(arena, matrix(COLUMNS, ROWS)),
                  encoding_of(&f16_dtype));
    weighted.importance = importance;
    check_encoded("by importance", matrix(ROWS, COLUMNS), weighted);
    check("mapped", view_map(arena, matrix(ROWS, COLUMNS), &f16_dtype, halve));
    check("converted", view_convert(arena, matrix(ROWS, COLUMNS), &bf16_dtype));
    check("ternary", view_ternary(arena, matrix(ROWS, COLUMNS)));
    check("normalized", view_normalize_columns(arena, matrix(ROWS, COLUMNS)));
    check("centered", view_less_mean(arena, tensor(&f32_dtype, 1, vector, 256)));
    check("bilinear", view_bilinear(arena, tensor(&f32_dtype, 3, picture, 256), 31));
    check("8-bit rows", view_int8_rows(arena, matrix(ROWS, COLUMNS)));
    check("8-bit row scales", view_int8_row_scales(arena, matrix(ROWS, COLUMNS)));
    check("scaled rows", view_scaled_rows(arena, matrix(ROWS, COLUMNS)));
    check("row scales", view_row_scales(arena, matrix(ROWS, COLUMNS)));
    check("a product", view_product(arena, matrix(ROWS, 24), matrix(24, COLUMNS)));
    check("merged", view_add_product(arena, matrix(ROWS, COLUMNS), 2, matrix(ROWS, 8), matrix(8, COLUMNS)));
}

/* Merges of two models and a base, of which one is transposed, with tiles that begin anywhere, at steps, or at rows. */
static void merged(void)
{
    static const struct {
        const char *name;
        merge_function *merge;
        enum merge_sparsifier sparsifier;
        size_t n_models;
    } methods[] = {{"linear", merge_linear, MERGE_DENSE, 2},
                   {"task arithmetic", merge_task_arithmetic, MERGE_DENSE, 2},
                   {"ties", merge_task_arithmetic, MERGE_MAGNITUDE, 2},
                   {"della", merge_task_arithmetic, MERGE_DELLA, 2},
                   {"slerp", merge_slerp, MERGE_DENSE, 1},
                   {"nuslerp", merge_nuslerp, MERGE_DENSE, 2},
                   {"model stock", merge_model_stock, MERGE_DENSE, 2},
                   {"sce", merge_sce, MERGE_DENSE, 2}};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const struct merge_model models[2] = {
            {.view = matrix(ROWS, COLUMNS), .weight = 1, .density = 0.5, .epsilon = 0.1},
            {.view = view_transpose(arena, matrix(COLUMNS, ROWS)), .weight = 1, .density = 0.5, .epsilon = 0.1}};
        const struct merge_operands operands = {.dtype = &bf16_dtype,
                                                .base = matrix(ROWS, COLUMNS),
                                                .models = models,
                                                .n_models = methods[i].n_models,
                                                .sparsifier = methods[i].sparsifier,
                                                .random = mersenne_new(arena, 1),
                                                .findings = findings_new(arena),
                                                .lambda = 1,
                                                .t = 0.5,
                                                .select_topk = 0.5,
                                                .filter_wise = true};
        check(methods[i].name, methods[i].merge(arena, &operands));
    }
}

static void add_length(void *context, const struct extent *from, uint64_t n_bytes)
{
    (void)from;
    *(uint64_t *)context += n_bytes;
}

/* Returns how many bytes are named for the first element. */
static uint64_t named_for_one(const struct view *view, bool as_at_first)
{
    uint64_t n_bytes = 0;
    struct dependencies to = {.take = add_length, .context = &n_bytes, .as_at_first = as_at_first};
    convert_depends(view, encoding_of(&f32_dtype), 0, 1, &to);
    dependencies_end(&to);
    return n_bytes;
}

/* What the first reader finds out, later ones need not read, but it can be named as if none had come. */
static void named_as_at_first(void)
{
    const struct merge_model model = {.view = matrix(ROWS, COLUMNS), .weight = 1};
    const struct merge_operands operands = {.dtype = &bf16_dtype,
                                            .base = matrix(ROWS, COLUMNS),
                                            .models = &model,
                                            .n_models = 1,
                                            .findings = findings_new(arena),
                                            .t = 0.5};
    const struct view *view = merge_slerp(arena, &operands);
    const uint64_t all = 2 * sizeof(float) * ROWS * COLUMNS;
    unsigned char bytes[2];
    struct error error;
    CHECK(named_for_one(view, false) == all && named_for_one(view, true) == all);
    CHECK(view_read(view, 0, 1, bytes, &error));
    CHECK(named_for_one(view, false) == 2 * sizeof(float) && named_for_one(view, true) == all);
    forget_all();
}

static const struct view *group_numbers(void)
{
    const uint64_t shape[] = {COLUMNS};
    const struct view *groups = tensor(dtype_by_name("I32"), 1, shape, 1);
    for (size_t i = 0; i < COLUMNS; i++)
        recorded[n_recorded - 1].bytes[4 * i] = (unsigned char)(i / 64);
    return groups;
}

static const struct view *blocks(const char *name, uint64_t n_rows)
{
    return tensor(dtype_by_name(name), 2, (const uint64_t[]){n_rows, COLUMNS}, 40);
}

static void packed(void)
{
    static const unsigned order[] = {1, 0};
    const struct fields nibbles = fields_of_words(32, 4), thirds = fields_of_stream(3);
    const struct dtype *i32 = dtype_by_name("I32");
    const struct view *words = view_reinterpret(arena, bytes(ROWS, COLUMNS, 256), i32);
    check("fields", view_fields(arena, words, &nibbles));
    check("fields of a stream", view_fields(arena, bytes(ROWS, COLUMNS / 8 * 3, 256), &thirds));
    check("bytes as words", view_reinterpret(arena, bytes(ROWS, COLUMNS, 256), i32));
    check("words as bytes", view_reinterpret(arena, matrix(ROWS, COLUMNS), &u8_dtype));
    check("lookup", view_lookup(arena, bytes(ROWS, COLUMNS, 16), matrix(1, 16)));
    const struct sharing shared = {10, 32, NULL}, grouped = {ROWS, 1, group_numbers()};
    check("by groups", view_combine(arena, bytes(ROWS, COLUMNS, 16), MULTIPLY, matrix(1, COLUMNS / 64), &grouped));
    check("combined",
          view_combine(arena, bytes(ROWS, COLUMNS, 16), MULTIPLY, matrix(ROWS / 10, COLUMNS / 32), &shared));
    check("with one", view_combine_one(arena, bytes(ROWS, COLUMNS, 16), ADD, matrix(1, 1)));
    check("with a number", view_combine_number(arena, bytes(ROWS, COLUMNS, 16), ADD, 4));
    check("codebooks", view_codebooks(arena, tensor(&u8_dtype, 3, (const uint64_t[]){ROWS, 64, 2}, 32),
                                      tensor(&f32_dtype, 4, (const uint64_t[]){2, 32, 1, 8}, 256)));
    check("groups of NVFP4", view_nvfp4_groups(arena, blocks("NVFP4", ROWS)));
    check("NVFP4 of groups", view_nvfp4_of_groups(arena, view_nvfp4_groups(arena, blocks("NVFP4", ROWS))));
    check("permuted blocks", view_of_permuted_blocks(arena, blocks("Q8_0", ROWS), order));
    check("scaled blocks", view_of_scaled_blocks(arena, blocks("Q8_0", ROWS), matrix(ROWS, COLUMNS)));
    const struct view *scales = bytes(ROWS, COLUMNS / 32, 200);
    check("MXFP4",
          packed_mxfp4_blocks(arena, tensor(&u8_dtype, 3, (const uint64_t[]){ROWS, COLUMNS / 32, 16}, 256), scales));
    const struct repacking repacking = {
        .codes = bytes(ROWS, COLUMNS, 16),
        .scales = tensor(&f16_dtype, 2, (const uint64_t[]){ROWS, COLUMNS / 64}, 60),
        .bits = 4,
        .group_size = 64,
        .zeros = bytes(ROWS, COLUMNS / 64, 1),
        .groups = group_numbers(),
    };
    check("repacked", view_of_repacked(arena, &repacking));
}

struct ranges {
    uint64_t offsets[8], lengths[8];
    size_t n_ranges;
};

static void list_range(void *context, const struct extent *from, uint64_t n_bytes)
{
    struct ranges *ranges = context;
    if (ranges->n_ranges < 8) {
        ranges->offsets[ranges->n_ranges] = from->offset;
        ranges->lengths[ranges->n_ranges] = n_bytes;
    }
    ranges->n_ranges++;
}

static struct ranges ranges_of(const struct view *view, uint64_t first, uint64_t count)
{
    struct ranges ranges = {0};
    struct dependencies to = {.take = list_range, .context = &ranges};
    view_depends(view, first, count, &to);
    dependencies_end(&to);
    return ranges;
}

/* Rows of 2048 bytes; the halves of a permuted matrix of 300 are 75 rows apart. */
static void exact(void)
{
    struct ranges ranges = ranges_of(matrix(ROWS, COLUMNS), 1000, 50);
    CHECK(ranges.n_ranges == 1 && ranges.offsets[0] == 4000 && ranges.lengths[0] == 200);
    ranges = ranges_of(permuted(matrix(ROWS, COLUMNS)), 0, 4 * COLUMNS);
    CHECK(ranges.n_ranges == 4 && ranges.offsets[3] == 225 * 2048 && ranges.lengths[3] == 2048);
    ranges = ranges_of(permuted(matrix(ROWS, COLUMNS)), 0, 8 * COLUMNS);
    CHECK_NAMED(ranges.n_ranges == 4 && ranges.offsets[1] == 75 * 2048 && ranges.lengths[1] == 2 * 2048,
                "two rows from each quarter");
    ranges = ranges_of(view_transpose(arena, matrix(ROWS, COLUMNS)), 0, 2 * ROWS);
    CHECK_NAMED(ranges.n_ranges == 1 && ranges.offsets[0] == 0 && ranges.lengths[0] == 299 * 2048 + 8,
                "two columns: one range from the first row to the last");
    ranges = ranges_of(view_slice(arena, matrix(ROWS, COLUMNS), 0, 5, 3, 100), 0, 3 * COLUMNS);
    CHECK(ranges.n_ranges == 3 && ranges.offsets[2] == 205 * 2048 && ranges.lengths[2] == 2048);
    ranges = ranges_of(matrix(ROWS, COLUMNS), 7, 0);
    CHECK(ranges.n_ranges == 0);
    const float one = 1;
    CHECK(ranges_of(view_numbers(arena, 0, NULL, &one), 0, 1).n_ranges == 0);
    forget_all();
}

int main(void)
{
    arena = arena_new();
    rearranged();
    computed();
    merged();
    named_as_at_first();
    packed();
    exact();
    arena_free(arena);
    return check_done();
}
