#include "quant/views/unpack.h"

#include "base/checked.h"
#include "base/little_endian.h"
#include "quant/views/combine.h"
#include "quant/views/convert.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Reinterpret: the same bytes as another dtype. */

struct reinterpreted {
    struct view view;
    const struct view *inner;
};

static bool reinterpreted_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct view *inner = ((const struct reinterpreted *)view)->inner;
    uint64_t unit = view->dtype->block_bytes, inner_unit = inner->dtype->block_bytes;
    uint64_t at = first * unit, end = at + count * unit;
    unsigned char *to = out, one[128]; /* no unit that has parts is longer */
    assert(inner_unit <= sizeof one);
    while (at < end) {
        uint64_t within = at % inner_unit, n = (end - at) / inner_unit * inner_unit;
        if (within == 0 && n > 0) {
            if (!view_read(inner, at / inner_unit, n / inner_unit, to, error))
                return false;
        } else {
            n = inner_unit - within < end - at ? inner_unit - within : end - at;
            if (!view_read(inner, at / inner_unit, 1, one, error))
                return false;
            memcpy(to, one + within, n);
        }
        at += n;
        to += n;
    }
    return true;
}

static void reinterpreted_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct view *inner = ((const struct reinterpreted *)view)->inner;
    uint64_t unit = view->dtype->block_bytes, inner_unit = inner->dtype->block_bytes;
    uint64_t from = first * unit / inner_unit;
    view_depends(inner, from, ((first + count) * unit - 1) / inner_unit - from + 1, to);
}

static const struct view_op reinterpreted_op = {
    .name = "reinterpret", .read = reinterpreted_read, .depends = reinterpreted_depends};

const struct view *view_reinterpret(struct arena *arena, const struct view *view, const struct dtype *dtype)
{
    if (view->dtype == dtype)
        return view;
    struct reinterpreted *reinterpreted = arena_alloc(arena, sizeof *reinterpreted);
    uint64_t shape[VIEW_MAX_RANK] = {1}, row_bytes = dtype_bytes(view->dtype, view_row_elements(view));
    unsigned rank = view->rank > 0 ? view->rank : 1;
    memcpy(shape, view->shape, view->rank * sizeof *shape);
    assert(row_bytes % dtype->block_bytes == 0);
    shape[rank - 1] = row_bytes / dtype->block_bytes * dtype->block_elements;
    view_init(&reinterpreted->view, arena, &reinterpreted_op, dtype, rank, shape);
    reinterpreted->inner = view;
    reinterpreted->view.scattered = view->scattered;
    return &reinterpreted->view;
}

/* Fields. */

enum { WORDS_BYTES = 16 * 1024 }; /* of words read at once, on the stack */

/* Like struct fields, but with only the shifts in use: a checkpoint may have 100,000 such views. */
struct cut {
    struct view view;
    const struct view *words;
    uint8_t word_units, n_fields, bits, shifts[];
};

static struct fields fields_of_cut(const struct cut *cut)
{
    struct fields fields = {cut->word_units, cut->n_fields, cut->bits, {0}};
    memcpy(fields.shifts, cut->shifts, cut->n_fields);
    return fields;
}

struct fields fields_of_words(unsigned word_bits, unsigned bits)
{
    struct fields fields = {.word_units = 1, .n_fields = (uint8_t)(word_bits / bits), .bits = (uint8_t)bits};
    for (unsigned i = 0; i < fields.n_fields; i++)
        fields.shifts[i] = (uint8_t)(i * bits);
    return fields;
}

struct fields fields_of_stream(unsigned bits)
{
    struct fields fields = fields_of_words(8 * bits, bits);
    fields.word_units = (uint8_t)bits;
    return fields;
}

/* Cuts fields [from, to) of one word. */
static unsigned char *cut_some(const struct fields *fields, const unsigned char *word, size_t word_bytes, unsigned from,
                               unsigned to, unsigned char *out)
{
    uint64_t bits = read_le(word, (unsigned)word_bytes), mask = (1u << fields->bits) - 1;
    for (unsigned i = from; i < to; i++)
        *out++ = (unsigned char)(bits >> fields->shifts[i] & mask);
    return out;
}

/* Cuts words of four bytes; inlined with a constant number of fields. */
static inline void cut_fours(const struct fields *fields, const unsigned char *words, size_t n_words, unsigned n_fields,
                             unsigned char *out)
{
    uint32_t mask = (1u << fields->bits) - 1, shifts[FIELDS_MAX];
    for (unsigned i = 0; i < n_fields; i++)
        shifts[i] = fields->shifts[i];
    for (size_t i = 0; i < n_words; i++, out += n_fields) {
        uint32_t word;
        memcpy(&word, words + 4 * i, sizeof word);
        little_endian(&word, 1, sizeof word);
        for (unsigned j = 0; j < n_fields; j++)
            out[j] = (unsigned char)(word >> shifts[j] & mask);
    }
}

static void cut_pairs(const struct fields *fields, const unsigned char *words, size_t n_words, unsigned char *out)
{
    unsigned first = fields->shifts[0], second = fields->shifts[1], mask = (1u << fields->bits) - 1;
    for (size_t i = 0; i < n_words; i++) {
        out[2 * i] = (unsigned char)(words[i] >> first & mask);
        out[2 * i + 1] = (unsigned char)(words[i] >> second & mask);
    }
}

static void cut_words(const struct fields *fields, const unsigned char *words, size_t word_bytes, size_t n_words,
                      unsigned char *out)
{
    if (word_bytes == 4 && fields->n_fields == 8 && combine_kernels()->cut_eights != NULL)
        combine_kernels()->cut_eights(fields, words, n_words, out);
    else if (word_bytes == 4 && fields->n_fields == 8)
        cut_fours(fields, words, n_words, 8, out);
    else if (word_bytes == 4 && fields->n_fields == 16)
        cut_fours(fields, words, n_words, 16, out);
    else if (word_bytes == 4 && fields->n_fields == 4)
        cut_fours(fields, words, n_words, 4, out);
    else if (word_bytes == 1 && fields->n_fields == 2)
        cut_pairs(fields, words, n_words, out);
    else
        for (size_t i = 0; i < n_words; i++)
            out = cut_some(fields, words + i * word_bytes, word_bytes, 0, fields->n_fields, out);
}

/* Cuts the range's fields from words [first / n_fields, ...) in memory. */
static void cut_range(const struct fields *fields, const unsigned char *words, size_t word_bytes, uint64_t first,
                      uint64_t count, unsigned char *out)
{
    unsigned n = fields->n_fields, from = (unsigned)(first % n);
    if (from != 0) {
        unsigned to = count < n - from ? from + (unsigned)count : n;
        out = cut_some(fields, words, word_bytes, from, to, out);
        words += word_bytes;
        count -= to - from;
    }
    cut_words(fields, words, word_bytes, count / n, out);
    cut_some(fields, words + count / n * word_bytes, count % n ? word_bytes : 0, 0, (unsigned)(count % n),
             out + count / n * n);
}

static bool fields_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct cut *cut = (const struct cut *)view;
    const struct fields fields = fields_of_cut(cut);
    uint64_t n_fields = fields.n_fields, units = fields.word_units;
    size_t word_bytes = units * cut->words->dtype->block_bytes;
    unsigned char here[WORDS_BYTES], *words = here, *to = out;
    uint64_t most = (WORDS_BYTES / word_bytes - 1) * n_fields; /* fields at once */
    if (cut->words->scattered && count > most) {               /* neighbours lie apart: reads all at once */
        most = count;
        words = memory_alloc((count / n_fields + 2) * word_bytes);
    }
    bool good = true;
    for (uint64_t end = first + count; first < end && good;) {
        uint64_t n = end - first < most ? end - first : most;
        uint64_t word = first / n_fields, n_words = (first + n + n_fields - 1) / n_fields - word;
        good = view_read(cut->words, word * units, n_words * units, words, error);
        if (good)
            cut_range(&fields, words, word_bytes, first, n, to);
        to += n;
        first += n;
    }
    if (words != here)
        free(words);
    return good;
}

/* Reads runs a whole number of words apart as runs of words. */
static bool fields_read_runs(const struct view *view, const struct runs *runs, void *out, struct error *error)
{
    const struct cut *cut = (const struct cut *)view;
    const struct fields fields = fields_of_cut(cut);
    uint64_t n_fields = fields.n_fields, units = fields.word_units;
    size_t word_bytes = units * cut->words->dtype->block_bytes;
    uint64_t word = runs->first / n_fields, n_words = (runs->first + runs->length + n_fields - 1) / n_fields - word;
    unsigned char words[WORDS_BYTES], *to = out;
    uint64_t most = n_words > 0 ? WORDS_BYTES / (n_words * word_bytes) : 0;
    if (runs->stride % n_fields != 0 || most == 0) {
        for (uint64_t i = 0; i < runs->count; i++, to += runs->length)
            if (!fields_read(view, runs->first + i * runs->stride, runs->length, to, error))
                return false;
        return true;
    }
    uint64_t stride = runs->stride / n_fields * units;
    bool is_whole = runs->first % n_fields == 0 && runs->length % n_fields == 0;
    for (uint64_t i = 0; i < runs->count; i += most) {
        uint64_t n = runs->count - i < most ? runs->count - i : most;
        const struct runs some = {word * units + i * stride, n, n_words * units, stride};
        if (!view_read_runs(cut->words, &some, words, error))
            return false;
        if (is_whole)
            cut_range(&fields, words, word_bytes, 0, n * runs->length, to);
        for (uint64_t j = 0; j < n && !is_whole; j++)
            cut_range(&fields, words + j * n_words * word_bytes, word_bytes, runs->first, runs->length,
                      to + j * runs->length);
        to += n * runs->length;
    }
    return true;
}

static void fields_depend(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct cut *cut = (const struct cut *)view;
    uint64_t word = first / cut->n_fields, n_words = (first + count - 1) / cut->n_fields - word + 1;
    view_depends(cut->words, word * cut->word_units, n_words * cut->word_units, to);
}

static const struct view_op fields_op = {
    .name = "fields", .read = fields_read, .depends = fields_depend, .read_runs = fields_read_runs};

const struct view *view_fields(struct arena *arena, const struct view *words, const struct fields *fields)
{
    assert(words->dtype->block_elements == 1 && words->rank > 0 && fields->bits >= 1 && fields->bits <= 8);
    assert(words->dtype->block_bytes * fields->word_units <= FIELDS_MAX_BYTES);
    assert(words->shape[words->rank - 1] % fields->word_units == 0);
    assert(fields->n_fields <= FIELDS_MAX);
    struct cut *cut = arena_alloc(arena, sizeof *cut + fields->n_fields);
    uint64_t shape[VIEW_MAX_RANK];
    memcpy(shape, words->shape, words->rank * sizeof *shape);
    shape[words->rank - 1] = shape[words->rank - 1] / fields->word_units * fields->n_fields;
    view_init(&cut->view, arena, &fields_op, &u8_dtype, words->rank, shape);
    cut->words = words;
    cut->word_units = fields->word_units;
    cut->n_fields = fields->n_fields;
    cut->bits = fields->bits;
    memcpy(cut->shifts, fields->shifts, fields->n_fields);
    cut->view.scattered = words->scattered;
    return &cut->view;
}

/* Lookup. */

enum { TABLE_MAX = 256, CODES = 16384 };

struct looked_up {
    struct view view;
    const struct view *codes, *table;
};

static bool lookup_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct looked_up *lookup = (const struct looked_up *)view;
    unsigned char here[CODES], *codes = here, *to = out;
    float table[TABLE_MAX] = {0};
    uint64_t most = CODES;
    if (!convert_values(lookup->table, 0, lookup->table->n_elements, table, error))
        return false;
    little_endian(table, lookup->table->n_elements, sizeof *table); /* to be copied as they are */
    if (view->scattered && count > most) {
        most = count;
        codes = memory_alloc(count);
    }
    bool good = true;
    for (uint64_t done = 0; done < count && good; done += most) {
        uint64_t n = count - done < most ? count - done : most;
        good = view_read(lookup->codes, first + done, n, codes, error);
        for (uint64_t i = 0; i < n && good; i++, to += sizeof *table)
            memcpy(to, &table[codes[i]], sizeof *table);
    }
    if (codes != here)
        free(codes);
    return good;
}

static void lookup_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct looked_up *lookup = (const struct looked_up *)view;
    convert_depends(lookup->table, encoding_of(&f32_dtype), 0, lookup->table->n_elements, to);
    view_depends(lookup->codes, first, count, to);
}

static const struct view_op lookup_op = {.name = "lookup", .read = lookup_read, .depends = lookup_depends};

const struct view *view_lookup(struct arena *arena, const struct view *codes, const struct view *table)
{
    assert(codes->dtype == &u8_dtype && table->n_elements <= TABLE_MAX);
    struct looked_up *lookup = arena_alloc(arena, sizeof *lookup);
    view_init_shared(&lookup->view, &lookup_op, &f32_dtype, codes->rank, codes->shape);
    lookup->codes = codes;
    lookup->table = table;
    lookup->view.scattered = codes->scattered;
    return &lookup->view;
}

/* Combine. */

enum { CHUNK_ELEMENTS = 16384, SCATTERED_ELEMENTS = 1 << 21 };

struct combining {
    struct view view;
    const struct view *left, *right; /* right: NULL with a number */
    struct sharing sharing;
    enum combination op;
    float number; /* operand of op or, with `right`, the zero to subtract first */
};

/* A combination with derived values, made for each read. */
struct combined {
    const struct view *left, *right;
    enum combination op;
    float number;
    const struct combine_kernels *kernels;
    struct sharing sharing;
    uint64_t n_rows, n_columns;           /* of a matrix of the left */
    uint64_t shared_rows, shared_columns; /* of a matrix of the right */
    uint64_t shared_matrix;               /* elements from one matrix of the right to the next; 0: there is one */
};

/* Whole rows, or a part of one row. */
struct chunk {
    uint64_t row, n_rows, column, n_columns; /* `row` counts the rows of all matrices */
};

/* The part of the right side for a chunk: `width` elements for each row of blocks, from column `first_column` on. */
struct shared {
    float *values, *spread; /* spread: one value for each column, if columns have groups */
    int64_t *groups;
    uint64_t n_runs, *runs; /* starts of runs of columns of one group; 0: runs are short */
    uint64_t first_row, n_rows, first_column, width;
};

static void combine_row(const struct combined *combined, const struct shared *shared, const struct chunk *chunk,
                        uint64_t row, float *values)
{
    const float *others = shared->values + (row / combined->sharing.rows - shared->first_row) * shared->width;
    uint64_t each = combined->sharing.columns;
    if (shared->n_runs > 0) {
        for (uint64_t i = 0; i < shared->n_runs; i++) {
            uint64_t first = shared->runs[i], end = i + 1 < shared->n_runs ? shared->runs[i + 1] : chunk->n_columns;
            combined->kernels->with_one(combined->op, values + first, end - first, others[shared->groups[first]]);
        }
    } else if (shared->groups != NULL) {
        for (uint64_t i = 0; i < chunk->n_columns; i++)
            shared->spread[i] = others[shared->groups[i]];
        combined->kernels->with_each(combined->op, values, chunk->n_columns, shared->spread);
    } else if (each == 1) {
        combined->kernels->with_each(combined->op, values, chunk->n_columns, others);
    } else {
        for (uint64_t done = 0, n; done < chunk->n_columns; done += n, others++) {
            n = each - (chunk->column + done) % each;
            if (n > chunk->n_columns - done)
                n = chunk->n_columns - done;
            combined->kernels->with_one(combined->op, values + done, n, *others);
        }
    }
}

/* Widens the numbers stored at the end of the memory of `groups`, from the first on. */
static void widen_groups(int64_t *groups, const unsigned char *stored, uint64_t n, unsigned size)
{
    for (uint64_t i = 0; i < n; i++) {
        if (size == 4) {
            int32_t group;
            memcpy(&group, stored + i * sizeof group, sizeof group);
            little_endian(&group, 1, sizeof group);
            groups[i] = group;
        } else {
            memcpy(&groups[i], stored + i * sizeof *groups, sizeof *groups);
            little_endian(&groups[i], 1, sizeof *groups);
        }
    }
}

static bool read_groups(const struct combined *combined, const struct chunk *chunk, int64_t *groups,
                        struct error *error)
{
    const struct view *view = combined->sharing.groups;
    unsigned size = view->dtype->block_bytes;
    int64_t n_groups = (int64_t)combined->shared_columns, least = 0, most = 0;
    unsigned char *stored = (unsigned char *)(groups + chunk->n_columns) - chunk->n_columns * size;
    if (!view_read(view, chunk->column, chunk->n_columns, stored, error))
        return false;
    widen_groups(groups, stored, chunk->n_columns, size);
    for (uint64_t i = 0; i < chunk->n_columns; i++) {
        least = groups[i] < least ? groups[i] : least;
        most = groups[i] > most ? groups[i] : most;
    }
    for (uint64_t i = 0; (least < -n_groups || most >= n_groups) && i < chunk->n_columns; i++)
        if (groups[i] < -n_groups || groups[i] >= n_groups)
            return error_set(error, "column %" PRIu64 " is in group %" PRId64 ", but there are only %" PRId64 " groups",
                             chunk->column + i, groups[i], n_groups);
    for (uint64_t i = 0; least < 0 && i < chunk->n_columns; i++)
        groups[i] += groups[i] < 0 ? n_groups : 0;
    return true;
}

/* Finds runs of columns with one group: most often columns are in the order of their groups. */
static void find_runs(const struct chunk *chunk, struct shared *shared)
{
    enum { SHORT = 16 };
    uint64_t n_runs = 0, most = chunk->n_columns / SHORT;
    for (uint64_t i = 0; i < chunk->n_columns && n_runs <= most; i++)
        if (i == 0 || shared->groups[i] != shared->groups[i - 1]) {
            if (n_runs < most)
                shared->runs[n_runs] = i;
            n_runs++;
        }
    shared->n_runs = n_runs <= most ? n_runs : 0;
}

/* Finds which rows and columns of the right side a chunk of one matrix needs. Returns the first element. */
static uint64_t place_shared(const struct combined *combined, const struct chunk *chunk, struct shared *shared)
{
    const struct sharing *sharing = &combined->sharing;
    uint64_t matrix = chunk->row / combined->n_rows, row = chunk->row % combined->n_rows;
    shared->first_row = row / sharing->rows;
    shared->n_rows = (row + chunk->n_rows - 1) / sharing->rows - shared->first_row + 1;
    shared->first_column = 0;
    shared->width = combined->shared_columns;
    if (chunk->n_columns < combined->n_columns && sharing->groups == NULL) {
        shared->first_column = chunk->column / sharing->columns;
        shared->width = (chunk->column + chunk->n_columns - 1) / sharing->columns - shared->first_column + 1;
    }
    return matrix * combined->shared_matrix + shared->first_row * combined->shared_columns + shared->first_column;
}

static bool read_shared(const struct combined *combined, const struct chunk *chunk, struct shared *shared,
                        struct error *error)
{
    uint64_t first = place_shared(combined, chunk, shared);
    return convert_values(combined->right, first, shared->n_rows * shared->width, shared->values, error) &&
           (combined->sharing.groups == NULL || read_groups(combined, chunk, shared->groups, error));
}

static bool combine_chunk(const struct combined *combined, const struct chunk *chunk, float *values,
                          struct error *error)
{
    const struct sharing *sharing = &combined->sharing;
    uint64_t n_shared = (chunk->n_rows / sharing->rows + 2) * combined->shared_columns;
    if (chunk->n_rows == 1)
        n_shared = sharing->groups != NULL ? combined->shared_columns : chunk->n_columns / sharing->columns + 2;
    float here[CHUNK_ELEMENTS];
    struct shared shared = {.values = n_shared <= CHUNK_ELEMENTS ? here : memory_alloc(n_shared * sizeof *here)};
    if (sharing->groups != NULL) {
        shared.groups = memory_alloc(chunk->n_columns * sizeof *shared.groups);
        shared.spread = memory_alloc(chunk->n_columns * sizeof *shared.spread);
        shared.runs = memory_alloc(chunk->n_columns * sizeof *shared.runs);
    }
    bool good = read_shared(combined, chunk, &shared, error);
    if (good && sharing->groups != NULL)
        find_runs(chunk, &shared);
    uint64_t row = chunk->row % combined->n_rows;
    for (uint64_t i = 0; i < chunk->n_rows && good; i++)
        combine_row(combined, &shared, chunk, row + i, values + i * chunk->n_columns);
    if (shared.values != here)
        free(shared.values);
    free(shared.groups);
    free(shared.spread);
    free(shared.runs);
    return good;
}

/* Returns the next part of a range: whole rows of one matrix, or part of a row. */
static struct chunk next_chunk(const struct combined *combined, uint64_t first, uint64_t count, uint64_t most)
{
    uint64_t row = first / combined->n_columns, column = first % combined->n_columns;
    struct chunk chunk = {row, 1, column, combined->n_columns - column};
    if (column == 0 && combined->n_columns <= most && combined->n_columns <= count) {
        uint64_t left = combined->n_rows - row % combined->n_rows;
        chunk.n_rows = (count < most ? count : most) / combined->n_columns;
        chunk.n_rows = chunk.n_rows < left ? chunk.n_rows : left;
        return chunk;
    }
    chunk.n_columns = chunk.n_columns < count ? chunk.n_columns : count;
    chunk.n_columns = chunk.n_columns < most ? chunk.n_columns : most;
    return chunk;
}

static struct combined combined_of(const struct combining *combining)
{
    const struct view *left = combining->left, *right = combining->right;
    if (right == NULL)
        return (struct combined){
            .left = left,
            .op = combining->op,
            .number = combining->number,
            .kernels = combine_kernels(),
            .n_columns = left->n_elements,
            .n_rows = 1,
        };
    struct combined combined = {
        .left = left,
        .right = right,
        .op = combining->op,
        .number = combining->number,
        .kernels = combine_kernels(),
        .sharing = combining->sharing,
        .n_columns = view_row_elements(left),
        .n_rows = left->rank >= 2 ? left->shape[left->rank - 2] : 1,
        .shared_columns = view_row_elements(right),
        .shared_rows = right->rank >= 2 ? right->shape[right->rank - 2] : 1,
    };
    uint64_t shared_matrix = combined.shared_rows * combined.shared_columns;
    combined.shared_matrix = right->n_elements > shared_matrix ? shared_matrix : 0;
    return combined;
}

/* Reads the left side of a range, combined with the number. */
static bool read_left(const struct combined *combined, uint64_t first, uint64_t count, float *values,
                      struct error *error)
{
    if (!convert_values(combined->left, first, count, values, error))
        return false;
    if (combined->right == NULL || combined->number != 0)
        combined->kernels->with_one(combined->right == NULL ? combined->op : SUBTRACT, values, count, combined->number);
    return true;
}

static bool combined_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct combined combined = combined_of((const struct combining *)view);
    uint64_t most = view->scattered ? SCATTERED_ELEMENTS : CHUNK_ELEMENTS;
    bool aligned = (uintptr_t)out % sizeof(float) == 0, good = true;
    float *values = aligned ? out : memory_alloc((count < most ? count : most) * sizeof *values);
    unsigned char *to = out;
    while (count > 0 && good) {
        struct chunk chunk = next_chunk(&combined, first, count, most);
        uint64_t n = chunk.n_rows * chunk.n_columns;
        good = read_left(&combined, first, n, values, error) &&
               (combined.right == NULL || combine_chunk(&combined, &chunk, values, error));
        if (good)
            little_endian(values, n, sizeof *values);
        if (aligned)
            values += n;
        else if (good)
            memcpy(to, values, n * sizeof *values);
        to += n * sizeof *values;
        first += n;
        count -= n;
    }
    if (!aligned)
        free(values);
    return good;
}

static void combined_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct combined combined = combined_of((const struct combining *)view);
    const struct view *groups = combined.sharing.groups;
    convert_depends(combined.left, encoding_of(&f32_dtype), first, count, to);
    for (uint64_t n; combined.right != NULL && count > 0; first += n, count -= n) {
        struct chunk chunk = next_chunk(&combined, first, count, count);
        struct shared shared;
        n = chunk.n_rows * chunk.n_columns;
        uint64_t at = place_shared(&combined, &chunk, &shared);
        convert_depends(combined.right, encoding_of(&f32_dtype), at, shared.n_rows * shared.width, to);
        if (groups != NULL)
            view_depends(groups, chunk.column, chunk.n_columns, to);
    }
}

static const struct view_op combined_op = {.name = "combine", .read = combined_read, .depends = combined_depends};

const struct view *view_combine_centered(struct arena *arena, const struct view *left, float zero, enum combination op,
                                         const struct view *right, const struct sharing *sharing)
{
    struct combining *combining = arena_alloc(arena, sizeof *combining);
    view_init_shared(&combining->view, &combined_op, &f32_dtype, left->rank, left->shape);
    combining->left = left;
    combining->right = right;
    combining->sharing = *sharing;
    combining->op = op;
    combining->number = zero;
    combining->view.scattered = left->scattered || right->scattered;
    const struct combined combined = combined_of(combining);
    assert(left->n_elements == 0 || right->n_elements % (combined.shared_rows * combined.shared_columns) == 0);
    assert(left->n_elements == 0 || combined.shared_rows == (combined.n_rows + sharing->rows - 1) / sharing->rows);
    assert(left->n_elements == 0 || sharing->groups != NULL ||
           combined.shared_columns == (combined.n_columns + sharing->columns - 1) / sharing->columns);
    assert(sharing->groups == NULL ||
           (sharing->groups->n_elements == combined.n_columns && sharing->groups->dtype->kind == DTYPE_INTEGER &&
            sharing->groups->dtype->block_bytes >= 4 && combined.shared_columns <= SHARING_MAX_GROUPS));
    (void)combined;
    return &combining->view;
}

const struct view *view_combine(struct arena *arena, const struct view *left, enum combination op,
                                const struct view *right, const struct sharing *sharing)
{
    return view_combine_centered(arena, left, 0, op, right, sharing);
}

const struct view *view_combine_one(struct arena *arena, const struct view *left, enum combination op,
                                    const struct view *right)
{
    uint64_t n_rows = left->rank >= 2 ? left->shape[left->rank - 2] : 1, n_columns = view_row_elements(left);
    const struct sharing all = {n_rows > 0 ? n_rows : 1, n_columns > 0 ? n_columns : 1, NULL};
    const uint64_t none[1] = {0};
    return view_combine(arena, left, op, view_reshape(arena, right, 0, none), &all);
}

const struct view *view_combine_number(struct arena *arena, const struct view *left, enum combination op, float number)
{
    struct combining *combining = arena_alloc(arena, sizeof *combining);
    view_init_shared(&combining->view, &combined_op, &f32_dtype, left->rank, left->shape);
    combining->left = left;
    combining->op = op;
    combining->number = number;
    combining->view.scattered = left->scattered;
    return &combining->view;
}
