#include "quant/views/norms.h"

#include "quant/views/convert.h"
#include "quant/views/dependencies.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 8192 };

struct normed {
    struct view view;
    const struct view *matrix, *norms;
    struct finding *factors; /* of columns, F32; NULL: of rows, which each read computes */
};

static uint64_t piece_of(uint64_t count)
{
    return count < PIECE ? count : PIECE;
}

/* Computes the factor of a row. */
static bool read_factor(const struct normed *normed, uint64_t row, float *ret_factor, struct error *error)
{
    uint64_t n_columns = normed->view.shape[1];
    float values[PIECE], norm;
    double sum = 0;
    for (uint64_t column = 0, n; column < n_columns; column += n) {
        n = piece_of(n_columns - column);
        if (!convert_values(normed->matrix, row * n_columns + column, n, values, error))
            return false;
        for (uint64_t i = 0; i < n; i++)
            sum += (double)values[i] * (double)values[i];
    }
    if (!convert_values(normed->norms, row, 1, &norm, error))
        return false;
    *ret_factor = norm / (float)sqrt(sum);
    return true;
}

static bool rows_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct normed *normed = (const struct normed *)view;
    uint64_t n_columns = view->shape[1];
    float values[PIECE], factor = 0;
    unsigned char *to = out;
    for (uint64_t n, left = 0; count > 0; first += n, count -= n, left -= n, to += n * sizeof *values) {
        if (left == 0) {
            left = n_columns - first % n_columns;
            if (!read_factor(normed, first / n_columns, &factor, error))
                return false;
        }
        n = piece_of(count < left ? count : left);
        if (!convert_values(normed->matrix, first, n, values, error))
            return false;
        for (uint64_t i = 0; i < n; i++)
            values[i] *= factor;
        f32_dtype.kernels[CPU_PORTABLE].encode(values, to, n);
    }
    return true;
}

/* Names whole rows. */
static void rows_depend(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    if (count == 0)
        return;
    const struct normed *normed = (const struct normed *)view;
    uint64_t n_columns = view->shape[1], row = first / n_columns, end = (first + count - 1) / n_columns + 1;
    convert_depends(normed->matrix, encoding_of(&f32_dtype), row * n_columns, (end - row) * n_columns, to);
    convert_depends(normed->norms, encoding_of(&f32_dtype), row, end - row, to);
}

static const struct view_op rows_op = {.name = "row norms", .read = rows_read, .depends = rows_depend};

/* Adds the squares of the whole matrix to the sums of their columns. */
static bool add_squares(const struct normed *normed, double *sums, struct error *error)
{
    uint64_t n_columns = normed->view.shape[1], n_elements = normed->view.n_elements, column = 0;
    float values[PIECE];
    for (uint64_t first = 0, n; first < n_elements; first += n) {
        n = piece_of(n_elements - first);
        if (!convert_values(normed->matrix, first, n, values, error))
            return false;
        for (uint64_t i = 0; i < n; i++) {
            sums[column] += (double)values[i] * (double)values[i];
            column = column + 1 < n_columns ? column + 1 : 0;
        }
    }
    return true;
}

static void *find_factors(const void *context, struct error *error)
{
    const struct normed *normed = context;
    uint64_t n_columns = normed->view.shape[1];
    double *sums = memory_alloc(n_columns * sizeof *sums);
    float *factors = NULL, *norms = memory_alloc(n_columns * sizeof *norms);
    memset(sums, 0, n_columns * sizeof *sums);
    if (add_squares(normed, sums, error) && convert_values(normed->norms, 0, n_columns, norms, error)) {
        factors = finding_alloc(n_columns * sizeof *factors);
        for (uint64_t i = 0; i < n_columns; i++)
            factors[i] = norms[i] / (float)sqrt(sums[i]);
    }
    free(norms);
    free(sums);
    return factors;
}

static bool columns_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct normed *normed = (const struct normed *)view;
    const float *factors = finding_get(normed->factors, find_factors, normed, error);
    float values[PIECE];
    unsigned char *to = out;
    if (factors == NULL)
        return false;
    for (uint64_t n, column = first % view->shape[1]; count > 0; first += n, count -= n, to += n * sizeof *values) {
        n = piece_of(count);
        if (!convert_values(normed->matrix, first, n, values, error))
            return false;
        for (uint64_t i = 0; i < n; i++) {
            values[i] *= factors[column];
            column = column + 1 < view->shape[1] ? column + 1 : 0;
        }
        f32_dtype.kernels[CPU_PORTABLE].encode(values, to, n);
    }
    return true;
}

/* Names the range, and everything until the factors are known. */
static void columns_depend(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct normed *normed = (const struct normed *)view;
    bool known = !to->as_at_first && finding_known(normed->factors);
    if (count == 0)
        return;
    convert_depends(normed->matrix, encoding_of(&f32_dtype), known ? first : 0, known ? count : view->n_elements, to);
    if (!known)
        convert_depends(normed->norms, encoding_of(&f32_dtype), 0, view->shape[1], to);
}

static const struct view_op columns_op = {.name = "column norms", .read = columns_read, .depends = columns_depend};

static struct normed *normed_new(struct arena *arena, const struct view_op *op, const struct view *matrix,
                                 const struct view *norms)
{
    struct normed *normed = arena_alloc(arena, sizeof *normed);
    view_init_shared(&normed->view, op, &f32_dtype, 2, matrix->shape);
    normed->matrix = matrix;
    normed->norms = norms;
    return normed;
}

const struct view *view_with_row_norms(struct arena *arena, const struct view *matrix, const struct view *norms)
{
    assert(matrix->rank == 2 && norms->n_elements == matrix->shape[0]);
    return &normed_new(arena, &rows_op, matrix, norms)->view;
}

const struct view *view_with_column_norms(struct arena *arena, const struct view *matrix, const struct view *norms,
                                          struct findings *findings)
{
    assert(matrix->rank == 2 && norms->n_elements == matrix->shape[1]);
    struct normed *normed = normed_new(arena, &columns_op, matrix, norms);
    normed->factors = finding_new(arena, findings);
    return &normed->view;
}
