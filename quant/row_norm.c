#include "quant/row_norm.h"

#include "quant/convert.h"

#include <assert.h>
#include <math.h>

enum { PIECE = 8192 };

struct normed {
    struct view view;
    const struct view *matrix, *norms;
};

/* Computes the factor of a row. */
static bool read_factor(const struct normed *normed, uint64_t row, float *ret_factor, struct error *error)
{
    uint64_t n_columns = normed->view.shape[1];
    float values[PIECE], norm;
    double sum = 0;
    for (uint64_t column = 0, n; column < n_columns; column += n) {
        n = n_columns - column < PIECE ? n_columns - column : PIECE;
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

static bool normed_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
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
        n = count < left ? count : left;
        n = n < PIECE ? n : PIECE;
        if (!convert_values(normed->matrix, first, n, values, error))
            return false;
        for (uint64_t i = 0; i < n; i++)
            values[i] *= factor;
        f32_dtype.kernels[CPU_PORTABLE].encode(values, to, n);
    }
    return true;
}

/* Names whole rows. */
static void normed_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    if (count == 0)
        return;
    const struct normed *normed = (const struct normed *)view;
    uint64_t n_columns = view->shape[1], row = first / n_columns, end = (first + count - 1) / n_columns + 1;
    convert_depends(normed->matrix, encoding_of(&f32_dtype), row * n_columns, (end - row) * n_columns, to);
    convert_depends(normed->norms, encoding_of(&f32_dtype), row, end - row, to);
}

static const struct view_op normed_op = {.name = "row norms", .read = normed_read, .depends = normed_depends};

const struct view *view_with_row_norms(struct arena *arena, const struct view *matrix, const struct view *norms)
{
    assert(matrix->rank == 2 && norms->n_elements == matrix->shape[0]);
    struct normed *normed = arena_alloc(arena, sizeof *normed);
    view_init_shared(&normed->view, &normed_op, &f32_dtype, 2, matrix->shape);
    normed->matrix = matrix;
    normed->norms = norms;
    return &normed->view;
}
