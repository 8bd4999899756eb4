/* Matrices with other norms, and vectors minus their mean. */
#include "quant/views/norms.h"

#include "base/little_endian.h"
#include "quant/arithmetic/torch_sum.h"
#include "quant/views/convert.h"
#include "quant/views/dependencies.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* New norms. */

enum { NORMED_PIECE = 8192 };

struct normed {
    struct view view;
    const struct view *matrix, *norms;
    struct finding *factors; /* of columns, F32; NULL: of rows, which each read computes */
};

static uint64_t piece_of(uint64_t count)
{
    return count < NORMED_PIECE ? count : NORMED_PIECE;
}

/* Computes the factor of a row. */
static bool read_factor(const struct normed *normed, uint64_t row, float *ret_factor, struct error *error)
{
    uint64_t n_columns = normed->view.shape[1];
    float values[NORMED_PIECE], norm;
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
    float values[NORMED_PIECE], factor = 0;
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
static bool normed_add_squares(const struct normed *normed, double *sums, struct error *error)
{
    uint64_t n_columns = normed->view.shape[1], n_elements = normed->view.n_elements, column = 0;
    float values[NORMED_PIECE];
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
    if (normed_add_squares(normed, sums, error) && convert_values(normed->norms, 0, n_columns, norms, error)) {
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
    float values[NORMED_PIECE];
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

/* Columns divided by their norms. */

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
static void normalized_add_squares(float *sums, const float *values, uint64_t n_rows, uint64_t n_columns)
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
            normalized_add_squares(divisors, values, n, n_columns);
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
    enum { NORMALIZED_PIECE = 8192 };
    const struct normalized *normalized = (const struct normalized *)view;
    uint64_t n_columns = view->shape[1], column = first % n_columns;
    const float *divisors = divisors_of(normalized, error);
    float values[NORMALIZED_PIECE];
    unsigned char *to = out;
    bool good = divisors != NULL;
    for (uint64_t n; count > 0 && good; first += n, count -= n, to += n * sizeof *values) {
        n = count < NORMALIZED_PIECE ? count : NORMALIZED_PIECE;
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

/* Vectors minus their means. */

static float sum_of(const float *values, size_t n)
{
    struct torch_sum sum;
    size_t n_whole = n - n % TORCH_SUM_STEP;
    torch_sum_begin(&sum, n);
    torch_sum_add(&sum, values, n_whole);
    return torch_sum_end(&sum, values + n_whole, n - n_whole);
}

struct centered {
    struct view view;
    const struct view *inner;
};

static bool centered_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    size_t n = (size_t)view->n_elements;
    float *values = memory_alloc(n * sizeof *values);
    bool read = convert_values(((const struct centered *)view)->inner, 0, n, values, error);
    if (read) {
        float mean = sum_of(values, n) / (float)n;
        for (uint64_t i = 0; i < count; i++)
            values[first + i] -= mean;
        little_endian(values + first, count, sizeof *values);
        memcpy(out, values + first, count * sizeof *values);
    }
    free(values);
    return read;
}

static void centered_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    /* The mean depends on all elements. */
    convert_depends(((const struct centered *)view)->inner, encoding_of(&f32_dtype), 0, view->n_elements, to);
}

static const struct view_op centered_op = {.name = "centered", .read = centered_read, .depends = centered_depends};

const struct view *view_less_mean(struct arena *arena, const struct view *vector)
{
    if (vector->rank != 1 || vector->n_elements == 0 || vector->n_elements > LESS_MEAN_MAX_ELEMENTS)
        return NULL;
    struct centered *centered = arena_alloc(arena, sizeof *centered);
    view_init_shared(&centered->view, &centered_op, &f32_dtype, 1, vector->shape);
    centered->inner = vector;
    return &centered->view;
}
