#include "quant/views/norms.h"

#include "quant/views/convert.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct normalized {
    struct view view;
    const struct view *matrix;
    _Atomic(float *) *divisors; /* of columns; NULL until the first read */
};

static void free_divisors(void *context)
{
    free(atomic_load((_Atomic(float *) *)context));
}

/* Adds the squares of whole rows, rounding each operation. */
static void add_squares(float *sums, const float *values, uint64_t n_rows, uint64_t n_columns)
{
    for (uint64_t row = 0; row < n_rows; row++, values += n_columns)
        for (uint64_t i = 0; i < n_columns; i++)
            sums[i] += values[i] * values[i];
}

static bool compute_divisors(const struct view *matrix, float *divisors, struct error *error)
{
    enum { AT_ONCE = 1 << 18 };
    uint64_t n_rows = matrix->shape[0], n_columns = matrix->shape[1];
    uint64_t most = n_columns < AT_ONCE ? AT_ONCE / n_columns : 1;
    float *values = memory_alloc((most < n_rows ? most : n_rows) * n_columns * sizeof *values);
    bool good = true;
    for (uint64_t row = 0, n; row < n_rows && good; row += n) {
        n = n_rows - row < most ? n_rows - row : most;
        good = convert_values(matrix, row * n_columns, n * n_columns, values, error);
        if (good)
            add_squares(divisors, values, n, n_columns);
    }
    for (uint64_t i = 0; i < n_columns; i++)
        divisors[i] = sqrtf(divisors[i]) + 1e-7f;
    free(values);
    return good;
}

/* Returns the divisors, which the first reader computes; two at once do no harm. NULL: an error. */
static const float *divisors_of(const struct normalized *normalized, struct error *error)
{
    float *known = atomic_load(normalized->divisors);
    if (known != NULL)
        return known;
    uint64_t n_columns = normalized->view.shape[1];
    float *computed = memory_alloc(n_columns * sizeof *computed);
    for (uint64_t i = 0; i < n_columns; i++)
        computed[i] = 0;
    if (!compute_divisors(normalized->matrix, computed, error)) {
        free(computed);
        return NULL;
    }
    if (atomic_compare_exchange_strong(normalized->divisors, &known, computed))
        return computed;
    free(computed);
    return known;
}

static bool normalized_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { PIECE = 8192 };
    const struct normalized *normalized = (const struct normalized *)view;
    uint64_t n_columns = view->shape[1], column = first % n_columns;
    const float *divisors = divisors_of(normalized, error);
    float values[PIECE];
    unsigned char *to = out;
    bool good = divisors != NULL;
    for (uint64_t n; count > 0 && good; first += n, count -= n, to += n * sizeof *values) {
        n = count < PIECE ? count : PIECE;
        good = convert_values(normalized->matrix, first, n, values, error);
        for (uint64_t i = 0; i < n && good; i++) {
            values[i] /= divisors[column];
            column = column + 1 < n_columns ? column + 1 : 0;
        }
        if (good)
            f32_dtype.kernels[CPU_PORTABLE].encode(values, to, n);
    }
    return good;
}

/* Names all rows, for the divisors, until a read has computed them; then those of the range. */
static void normalized_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct normalized *normalized = (const struct normalized *)view;
    bool known = atomic_load(normalized->divisors) != NULL;
    convert_depends(normalized->matrix, encoding_of(&f32_dtype), known ? first : 0, known ? count : view->n_elements,
                    to);
}

static const struct view_op normalized_op = {
    .name = "normalize columns", .read = normalized_read, .depends = normalized_depends};

const struct view *view_normalize_columns(struct arena *arena, const struct view *matrix)
{
    assert(matrix->rank == 2);
    struct normalized *normalized = arena_alloc(arena, sizeof *normalized);
    view_init_shared(&normalized->view, &normalized_op, &f32_dtype, 2, matrix->shape);
    normalized->matrix = matrix;
    normalized->divisors = arena_alloc(arena, sizeof *normalized->divisors);
    atomic_init(normalized->divisors, NULL);
    arena_on_free(arena, free_divisors, normalized->divisors);
    return &normalized->view;
}
