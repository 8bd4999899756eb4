#include "quant/views/row_map.h"

#include "quant/views/combine.h"
#include "quant/views/convert.h"
#include "quant/views/dependencies.h"
#include "quant/views/finding.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct mapped {
    struct view view;
    const struct row_map *map;
    struct finding *padding; /* F32 values of a row; NULL: there are no such rows */
    uint64_t n_columns;
    const struct view *tables[];
};

/* A range within one row, or within rows that follow each other in one table. */
struct piece {
    const struct row_place *place; /* NULL: padding */
    uint64_t column, count;
};

/* Returns the piece that begins at element `first`, of at most `count` elements. */
static struct piece piece_at(const struct mapped *mapped, uint64_t first, uint64_t count)
{
    const struct row_map *map = mapped->map;
    uint64_t row = first / mapped->n_columns;
    struct piece piece = {NULL, first % mapped->n_columns, mapped->n_columns - first % mapped->n_columns};
    if (row < map->n_rows) {
        piece.place = &map->places[row];
        for (uint64_t next = 1; piece.count < count && row + next < map->n_rows && piece.place->table >= 0; next++) {
            if (piece.place[next].table != piece.place->table || piece.place[next].row != piece.place->row + next)
                break;
            piece.count += mapped->n_columns;
        }
    }
    piece.count = piece.count < count ? piece.count : count;
    return piece;
}

static uint64_t element_of(const struct mapped *mapped, const struct row_place *place, uint64_t column)
{
    return place->row * mapped->n_columns + column;
}

static void encode(const struct mapped *mapped, const float *values, uint64_t n, void *out)
{
    dtype_kernels(mapped->view.dtype).encode(values, out, n);
}

/* Adds up the rows of a mean one by one, and divides. */
static bool read_mean(const struct mapped *mapped, const struct row_mean *mean, uint64_t column, uint64_t count,
                      void *out, struct error *error)
{
    const struct rounded in = rounded_in(mapped->view.dtype);
    float *sum = memory_alloc(count * sizeof *sum), *row = memory_alloc(count * sizeof *row);
    bool good = true;
    memset(sum, 0, count * sizeof *sum);
    for (size_t i = 0; i < mean->count && good; i++) {
        const struct row_place *place = &mean->places[i];
        good = convert_values(mapped->tables[place->table], element_of(mapped, place, column), count, row, error);
        if (good)
            rounded_each(&in, ADD, sum, count, row);
    }
    if (good) {
        rounded_one(&in, DIVIDE, sum, count, (float)mean->count);
        encode(mapped, sum, count, out);
    }
    free(sum);
    free(row);
    return good;
}

static bool read_row(const struct mapped *mapped, const struct row_place *place, uint64_t column, uint64_t count,
                     void *out, struct error *error)
{
    if (place->table >= 0)
        return view_read(mapped->tables[place->table], element_of(mapped, place, column), count, out, error);
    if (place->table == ROW_MEAN)
        return read_mean(mapped, &mapped->map->means[place->row], column, count, out, error);
    memset(out, 0, count * mapped->view.dtype->block_bytes);
    return true;
}

/* The mean of all rows, in torch's order: sums of 2^bits rows are added to sums of such sums, four levels deep. */

enum { LEVELS = 4, LEAST_BITS = 4 };

struct cascade {
    float *levels[LEVELS];
    uint64_t n_columns, n_rows;
    unsigned bits;
};

static unsigned bits_of(uint64_t n_rows)
{
    unsigned bits = 0;
    while (bits < 64 && (uint64_t)1 << bits < n_rows)
        bits++;
    return bits / LEVELS > LEAST_BITS ? bits / LEVELS : LEAST_BITS;
}

static void add_level(float *sums, const float *values, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        sums[i] += values[i];
}

/* Adds a row; after the last row of a group, its sum moves up. The rows after the last whole group stay on level 0. */
static void add_row(struct cascade *cascade, const float *row, uint64_t n_all)
{
    uint64_t group = (uint64_t)1 << cascade->bits, n_grouped = n_all - n_all % group;
    add_level(cascade->levels[0], row, cascade->n_columns);
    cascade->n_rows++;
    for (unsigned level = 1; level < LEVELS && cascade->n_rows <= n_grouped; level++) {
        if (cascade->n_rows % ((uint64_t)1 << (level * cascade->bits)) != 0)
            break;
        add_level(cascade->levels[level], cascade->levels[level - 1], cascade->n_columns);
        memset(cascade->levels[level - 1], 0, cascade->n_columns * sizeof(float));
    }
}

static bool add_rows(const struct mapped *mapped, struct cascade *cascade, struct error *error)
{
    const struct dtype *dtype = mapped->view.dtype;
    unsigned char *stored = memory_alloc(mapped->n_columns * dtype->block_bytes);
    float *row = memory_alloc(mapped->n_columns * sizeof *row);
    bool good = true;
    for (uint64_t i = 0; i < mapped->map->n_rows && good; i++) {
        good = read_row(mapped, &mapped->map->places[i], 0, mapped->n_columns, stored, error);
        if (good) {
            dtype_kernels(dtype).decode(stored, row, mapped->n_columns);
            add_row(cascade, row, mapped->map->n_rows);
        }
    }
    free(stored);
    free(row);
    return good;
}

static void *compute_padding(const void *context, struct error *error)
{
    const struct mapped *mapped = context;
    uint64_t n = mapped->n_columns;
    float *sums = memory_alloc(LEVELS * n * sizeof *sums), *finding = NULL;
    struct cascade cascade = {.n_columns = n, .bits = bits_of(mapped->map->n_rows)};
    memset(sums, 0, LEVELS * n * sizeof *sums);
    for (unsigned level = 0; level < LEVELS; level++)
        cascade.levels[level] = sums + level * n;
    if (add_rows(mapped, &cascade, error)) {
        for (unsigned level = 1; level < LEVELS; level++)
            add_level(sums, cascade.levels[level], n);
        finding = finding_alloc(n * sizeof *finding);
        for (uint64_t i = 0; i < n; i++)
            finding[i] = sums[i] / (float)mapped->map->n_rows;
    }
    free(sums);
    return finding;
}

static bool mapped_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct mapped *mapped = (const struct mapped *)view;
    unsigned char *to = out;
    while (count > 0) {
        struct piece piece = piece_at(mapped, first, count);
        if (piece.place != NULL) {
            if (!read_row(mapped, piece.place, piece.column, piece.count, to, error))
                return false;
        } else {
            const float *padding = finding_get(mapped->padding, compute_padding, mapped, error);
            if (padding == NULL)
                return false;
            encode(mapped, padding + piece.column, piece.count, to);
        }
        first += piece.count;
        count -= piece.count;
        to += piece.count * view->dtype->block_bytes;
    }
    return true;
}

static void row_depends(const struct mapped *mapped, const struct row_place *place, uint64_t column, uint64_t count,
                        struct dependencies *to)
{
    if (place->table >= 0) {
        view_depends(mapped->tables[place->table], element_of(mapped, place, column), count, to);
    } else if (place->table == ROW_MEAN) {
        const struct row_mean *mean = &mapped->map->means[place->row];
        for (size_t i = 0; i < mean->count; i++)
            row_depends(mapped, &mean->places[i], column, count, to);
    }
}

static void mapped_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct mapped *mapped = (const struct mapped *)view;
    while (count > 0) {
        struct piece piece = piece_at(mapped, first, count);
        if (piece.place != NULL)
            row_depends(mapped, piece.place, piece.column, piece.count, to);
        else if (to->as_at_first || !finding_known(mapped->padding))
            mapped_depends(view, 0, mapped->map->n_rows * mapped->n_columns, to);
        first += piece.count;
        count -= piece.count;
    }
}

static const struct view_op mapped_op = {.name = "rows", .read = mapped_read, .depends = mapped_depends};

const struct view *view_map_rows(struct arena *arena, const struct dtype *dtype, const struct view *const *tables,
                                 size_t n_tables, const struct row_map *map, struct findings *findings)
{
    struct mapped *mapped = arena_alloc(arena, sizeof *mapped + n_tables * sizeof *mapped->tables);
    for (size_t i = 0; i < n_tables; i++) {
        if (tables[i] == NULL)
            continue;
        assert(tables[i]->rank == 2 && (mapped->n_columns == 0 || tables[i]->shape[1] == mapped->n_columns));
        mapped->n_columns = tables[i]->shape[1];
        mapped->tables[i] = view_convert(arena, tables[i], dtype);
    }
    const uint64_t shape[] = {map->n_rows + map->n_padding, mapped->n_columns};
    view_init(&mapped->view, arena, &mapped_op, dtype, 2, shape);
    mapped->map = map;
    if (map->n_padding > 0)
        mapped->padding = finding_new(arena, findings);
    return &mapped->view;
}
