#include "quant/views/product.h"

#include "base/little_endian.h"
#include "quant/views/convert.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    TILE_RANK = 512,        /* terms summed before reading the next part of both factors */
    TILE_ELEMENTS = 1 << 16 /* of either factor, decoded: fits the second-level cache */
};

struct product {
    struct view view;
    const struct view *addend; /* NULL: a plain product, without scale */
    float scale;
    const struct view *left, *right;
    uint64_t n_rows, n_columns, rank; /* of one matrix */
};

/* Whole rows of one matrix, or a part of a row. */
struct chunk {
    uint64_t matrix, row, n_rows, column, n_columns;
};

/* Decoded parts of the factors. */
struct tiles {
    float *left, *right;
};

/* Reads elements [row, row + n_rows) x [column, column + n_columns) of a matrix of a view. */
static bool read_box(const struct view *view, uint64_t matrix, uint64_t row, uint64_t n_rows, uint64_t column,
                     uint64_t n_columns, float *out, struct error *error)
{
    uint64_t width = view_row_elements(view), height = view->shape[view->rank - 2];
    uint64_t first = (matrix * height + row) * width + column;
    if (n_columns == width)
        return convert_values(view, first, n_rows * n_columns, out, error);
    for (uint64_t i = 0; i < n_rows; i++)
        if (!convert_values(view, first + i * width, n_columns, out + i * n_columns, error))
            return false;
    return true;
}

/* Computes the sums of one chunk, which has at most TILE_ELEMENTS / TILE_RANK rows. */
static bool sum_chunk(const struct product *product, const struct chunk *chunk, const struct tiles *tiles, double *sums,
                      struct error *error)
{
    add_terms_function *add_terms = add_terms_at(cpu_level());
    memset(sums, 0, chunk->n_rows * chunk->n_columns * sizeof *sums);
    for (uint64_t k = 0, rank; k < product->rank; k += rank) {
        rank = product->rank - k < TILE_RANK ? product->rank - k : TILE_RANK;
        if (!read_box(product->left, chunk->matrix, chunk->row, chunk->n_rows, k, rank, tiles->left, error))
            return false;
        for (uint64_t j = 0, width; j < chunk->n_columns; j += width) {
            width = TILE_ELEMENTS / rank < chunk->n_columns - j ? TILE_ELEMENTS / rank : chunk->n_columns - j;
            if (!read_box(product->right, chunk->matrix, k, rank, chunk->column + j, width, tiles->right, error))
                return false;
            add_terms(tiles->left, tiles->right, chunk->n_rows, rank, width, sums + j, chunk->n_columns);
        }
    }
    return true;
}

static bool read_chunk(const struct product *product, const struct chunk *chunk, const struct tiles *tiles,
                       float *values, struct error *error)
{
    uint64_t n = chunk->n_rows * chunk->n_columns;
    double *sums = memory_alloc(n * sizeof *sums);
    bool good = sum_chunk(product, chunk, tiles, sums, error);
    for (uint64_t i = 0; i < n && good; i++)
        values[i] = (float)sums[i];
    free(sums);
    return good;
}

/* Returns the next part of a range: whole rows of one matrix, or part of a row. */
static struct chunk next_chunk(const struct product *product, uint64_t first, uint64_t count)
{
    enum { MOST_ROWS = TILE_ELEMENTS / TILE_RANK };
    uint64_t row = first / product->n_columns;
    struct chunk chunk = {row / product->n_rows, row % product->n_rows, 1, first % product->n_columns, 0};
    chunk.n_columns = product->n_columns - chunk.column;
    if (chunk.n_columns > count)
        chunk.n_columns = count;
    if (chunk.n_columns < product->n_columns)
        return chunk;
    uint64_t left = product->n_rows - chunk.row, n_rows = count / product->n_columns;
    n_rows = n_rows < left ? n_rows : left;
    chunk.n_rows = n_rows < MOST_ROWS ? n_rows : MOST_ROWS;
    return chunk;
}

static void add_scaled(float *restrict values, float scale, const float *restrict addends, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        float scaled = scale * values[i];
        values[i] = addends[i] + scaled;
    }
}

/* Adds the addend's elements from `first` on to the sums. */
static bool add_addend(const struct product *product, uint64_t first, uint64_t count, float *values,
                       struct error *error)
{
    float *addends = memory_alloc(count * sizeof *addends);
    bool good = convert_values(product->addend, first, count, addends, error);
    if (good)
        add_scaled(values, product->scale, addends, count);
    free(addends);
    return good;
}

static bool product_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct product *product = (const struct product *)view;
    bool aligned = (uintptr_t)out % _Alignof(float) == 0, good = true;
    float *values = aligned ? out : memory_alloc(count * sizeof *values);
    struct tiles tiles = {memory_alloc(TILE_ELEMENTS * sizeof(float)), memory_alloc(TILE_ELEMENTS * sizeof(float))};
    for (uint64_t done = 0, n; done < count && good; done += n) {
        struct chunk chunk = next_chunk(product, first + done, count - done);
        n = chunk.n_rows * chunk.n_columns;
        good = read_chunk(product, &chunk, &tiles, values + done, error) &&
               (product->addend == NULL || add_addend(product, first + done, n, values + done, error));
    }
    if (good)
        little_endian(values, count, sizeof *values);
    if (!aligned && good)
        memcpy(out, values, count * sizeof *values);
    if (!aligned)
        free(values);
    free(tiles.left);
    free(tiles.right);
    return good;
}

/* Names the right factor's bytes: the same columns for a part of one row, else all of each matrix. */
static void right_depends(const struct product *product, uint64_t first, uint64_t count, struct dependencies *to)
{
    uint64_t n_columns = product->n_columns, row = first / n_columns, last_row = (first + count - 1) / n_columns;
    uint64_t matrix = row / product->n_rows, n_matrices = last_row / product->n_rows - matrix + 1;
    uint64_t matrix_elements = product->rank * n_columns, at = matrix * matrix_elements;
    if (row != last_row)
        convert_depends(product->right, encoding_of(&f32_dtype), at, n_matrices * matrix_elements, to);
    for (uint64_t k = 0; row == last_row && k < product->rank; k++)
        convert_depends(product->right, encoding_of(&f32_dtype), at + k * n_columns + first % n_columns, count, to);
}

static void product_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct product *product = (const struct product *)view;
    uint64_t row = first / product->n_columns, n_rows = (first + count - 1) / product->n_columns - row + 1;
    convert_depends(product->left, encoding_of(&f32_dtype), row * product->rank, n_rows * product->rank, to);
    right_depends(product, first, count, to);
    if (product->addend != NULL)
        convert_depends(product->addend, encoding_of(&f32_dtype), first, count, to);
}

static const struct view_op product_op = {.name = "product", .read = product_read, .depends = product_depends};

static const struct view *make_product(struct arena *arena, const struct view *addend, float scale,
                                       const struct view *left, const struct view *right)
{
    unsigned rank = left->rank;
    uint64_t shape[VIEW_MAX_RANK];
    assert(rank >= 2 && right->rank == rank && left->shape[rank - 1] == right->shape[rank - 2]);
    assert(memcmp(left->shape, right->shape, (rank - 2) * sizeof *shape) == 0);
    assert(left->dtype->block_elements == 1 && right->dtype->block_elements == 1);
    memcpy(shape, left->shape, rank * sizeof *shape);
    shape[rank - 1] = right->shape[rank - 1];
    struct product *product = arena_alloc(arena, sizeof *product);
    view_init(&product->view, arena, &product_op, &f32_dtype, rank, shape);
    assert(addend == NULL || addend->n_elements == product->view.n_elements);
    product->addend = addend;
    product->scale = scale;
    product->left = left;
    product->right = right;
    product->n_rows = shape[rank - 2];
    product->n_columns = shape[rank - 1];
    product->rank = left->shape[rank - 1];
    product->view.scattered = true; /* one read of the right factor serves many rows */
    return &product->view;
}

const struct view *view_product(struct arena *arena, const struct view *left, const struct view *right)
{
    return make_product(arena, NULL, 1, left, right);
}

bool view_factors(const struct view *view, const struct view **ret_left, const struct view **ret_right)
{
    const struct product *product = (const struct product *)view;
    if (view->op != &product_op || product->addend != NULL)
        return false;
    *ret_left = product->left;
    *ret_right = product->right;
    return true;
}

const struct view *view_add_product(struct arena *arena, const struct view *view, float scale, const struct view *left,
                                    const struct view *right)
{
    return make_product(arena, view, scale, left, right);
}
