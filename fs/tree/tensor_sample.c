#include "fs/tree/tensor_sample.h"

#include "quant/blocks/dtype.h"
#include "quant/views/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_VALUES = SAMPLE_ROWS * SAMPLE_COLUMNS * SAMPLE_RUN };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Returns the start of part `i` of `n` equal parts of `whole`, which may be large. */
static uint64_t part_start(uint64_t whole, uint64_t n, uint64_t i)
{
    return whole / n * i + whole % n * i / n;
}

static void shape_of(const struct view *view, struct tensor_sample *sample)
{
    sample->columns = view_row_elements(view);
    sample->rows = view->rank >= 2 ? view->shape[view->rank - 2] : 1;
    uint64_t matrix = sample->rows * sample->columns;
    sample->matrices = matrix > 0 ? view->n_elements / matrix : 0;
    sample->n_rows = sample->rows < SAMPLE_ROWS ? (unsigned)sample->rows : SAMPLE_ROWS;
    sample->n_columns = sample->columns < SAMPLE_COLUMNS ? (unsigned)sample->columns : SAMPLE_COLUMNS;
}

static void count(struct tensor_sample *sample, double value)
{
    sample->n_values++;
    sample->n_zeros += value == 0;
    sample->n_nan += isnan(value) != 0;
    sample->n_infinite += isinf(value) != 0;
    if (!isfinite(value))
        return;
    uint64_t n_finite = sample->n_values - sample->n_nan - sample->n_infinite;
    double difference = value - sample->mean;
    sample->least = n_finite == 1 ? value : fmin(sample->least, value);
    sample->largest = n_finite == 1 ? value : fmax(sample->largest, value);
    sample->mean += difference / (double)n_finite;
    sample->deviation += difference * (value - sample->mean); /* squares, until the end */
}

static float root_mean_square(const float *values, uint64_t n)
{
    double squares = 0;
    for (uint64_t i = 0; i < n; i++)
        squares += (double)values[i] * (double)values[i];
    return isfinite(squares) ? (float)sqrt(squares / (double)n) : NAN;
}

/* Reads a run of every cell of a row; returns the number of values. */
static bool read_row(const struct view *view, uint64_t first, struct tensor_sample *sample, float *cells, float *values,
                     uint64_t *ret_n_values, struct error *error)
{
    bool is_whole = sample->columns <= SAMPLE_COLUMNS * SAMPLE_RUN;
    if (is_whole && !convert_values(view, first, sample->columns, values, error))
        return false;
    *ret_n_values = 0;
    for (unsigned i = 0; i < sample->n_columns; i++) {
        uint64_t start = part_start(sample->columns, sample->n_columns, i),
                 length = part_start(sample->columns, sample->n_columns, i + 1) - start;
        length = length < SAMPLE_RUN ? length : SAMPLE_RUN;
        if (!is_whole && !convert_values(view, first + start, length, values + *ret_n_values, error))
            return false;
        cells[i] = root_mean_square(values + *ret_n_values, length);
        sample->largest_cell = fmaxf(sample->largest_cell, cells[i]);
        *ret_n_values += length;
    }
    return true;
}

static void fill_bins(struct tensor_sample *sample, const float *values, uint64_t n)
{
    double reach = 6 * sample->deviation;
    sample->bins_from = fmax(sample->least, sample->mean - reach);
    sample->bins_to = fmin(sample->largest, sample->mean + reach);
    double width = (sample->bins_to - sample->bins_from) / SAMPLE_BINS;
    for (uint64_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            continue;
        double bin = width > 0 ? ((double)values[i] - sample->bins_from) / width : 0;
        sample->bins[(size_t)fmin(fmax(bin, 0), SAMPLE_BINS - 1)]++;
    }
}

bool tensor_sample(const struct view *view, uint64_t matrix, double seconds, struct tensor_sample *ret_sample,
                   struct error *error)
{
    enum { STEP = 37 }; /* has no divisor in common with SAMPLE_ROWS; fewer rows are read in their order */
    struct tensor_sample *sample = ret_sample;
    double end = now() + seconds;
    *sample = (struct tensor_sample){0};
    shape_of(view, sample);
    for (unsigned i = 0; i < SAMPLE_ROWS * SAMPLE_COLUMNS; i++)
        sample->cells[i] = -1;
    if (matrix >= sample->matrices)
        return true;
    float *values = memory_alloc(MOST_VALUES * sizeof *values);
    uint64_t n_values = 0, n_of_row;
    bool succeeds = true;
    for (; succeeds && sample->n_taken < sample->n_rows && (sample->n_taken == 0 || now() < end); sample->n_taken++) {
        unsigned row = sample->n_rows == SAMPLE_ROWS ? sample->n_taken * STEP % SAMPLE_ROWS : sample->n_taken;
        uint64_t at = part_start(sample->rows, sample->n_rows, row),
                 first = (matrix * sample->rows + at) * sample->columns;
        succeeds = read_row(view, first, sample, sample->cells + (size_t)row * sample->n_columns, values + n_values,
                            &n_of_row, error);
        for (uint64_t i = 0; succeeds && i < n_of_row; i++)
            count(sample, (double)values[n_values++]);
    }
    uint64_t n_finite = sample->n_values - sample->n_nan - sample->n_infinite;
    sample->deviation = n_finite > 0 ? sqrt(sample->deviation / (double)n_finite) : 0;
    if (succeeds && n_finite > 0)
        fill_bins(sample, values, n_values);
    free(values);
    return succeeds;
}

enum { ERROR_RUNS = 16, ERROR_BLOCK = 256, ERROR_RUN = 4 * ERROR_BLOCK };

static bool type_error(const struct dtype *type, const float *values, size_t n, struct type_error *ret_error)
{
    struct kernels kernels = dtype_kernels(type);
    bool fits = type->kind == DTYPE_BLOCK && type->ggml_type != GGML_TYPE_NONE && type->block_elements > 1 &&
                ERROR_BLOCK % type->block_elements == 0;
    if (!fits || kernels.encode == NULL || kernels.decode == NULL)
        return false;
    size_t n_blocks = n / type->block_elements;
    void *blocks = memory_alloc(n_blocks * type->block_bytes);
    float *decoded = memory_alloc(n * sizeof *decoded);
    kernels.encode(values, blocks, n_blocks);
    kernels.decode(blocks, decoded, n_blocks);
    struct loss loss = {0};
    loss_add(&loss, values, decoded, n, NULL);
    *ret_error = (struct type_error){type, loss_relative(&loss)};
    free(decoded);
    free(blocks);
    return isfinite(ret_error->relative_error);
}

/* Reads the runs; returns the number of values, 0 if one is not finite. */
static bool read_runs(const struct view *view, double end, float *values, size_t *ret_n, struct error *error)
{
    uint64_t columns = view_row_elements(view), rows = columns > 0 ? view->n_elements / columns : 0,
             n_runs = rows < ERROR_RUNS ? rows : ERROR_RUNS, length = columns / ERROR_BLOCK * ERROR_BLOCK;
    length = length < ERROR_RUN ? length : ERROR_RUN;
    *ret_n = 0;
    for (uint64_t i = 0; i < n_runs && length > 0 && (i == 0 || now() < end); i++) {
        uint64_t shift = part_start((columns - length) / ERROR_BLOCK, n_runs, i) * ERROR_BLOCK;
        if (!convert_values(view, part_start(rows, n_runs, i) * columns + shift, length, values + *ret_n, error))
            return false;
        *ret_n += length;
    }
    size_t n_finite = 0;
    while (n_finite < *ret_n && isfinite(values[n_finite]))
        n_finite++;
    *ret_n = n_finite == *ret_n ? n_finite : 0;
    return true;
}

static int by_bits(const void *a, const void *b)
{
    const struct dtype *one = ((const struct type_error *)a)->type, *other = ((const struct type_error *)b)->type;
    double bits = (double)one->block_bytes / one->block_elements,
           others = (double)other->block_bytes / other->block_elements;
    return bits != others ? (bits > others) - (bits < others) : strcmp(one->name, other->name);
}

size_t tensor_type_errors(const struct view *view, double seconds, struct type_error *errors, size_t most,
                          struct error *error)
{
    double end = now() + seconds;
    size_t n_values, n_found = 0;
    float *values = memory_alloc(ERROR_RUNS * ERROR_RUN * sizeof *values);
    if (!read_runs(view, end, values, &n_values, error))
        n_values = 0;
    for (const struct dtype *const *type = dtypes; *type != NULL && n_values > 0 && n_found < most && now() < end;
         type++)
        n_found += type_error(*type, values, n_values, &errors[n_found]);
    free(values);
    qsort(errors, n_found, sizeof *errors, by_bits);
    return n_found;
}

bool tensor_difference(const struct view *view, const struct view *other, double *ret_squares, double *ret_differences,
                       struct error *error)
{
    enum { RUNS = 4, RUN = 256 };
    float values[RUN], others[RUN];
    uint64_t n_runs = view->n_elements <= RUN ? 1 : RUNS, length = view->n_elements < RUN ? view->n_elements : RUN;
    *ret_squares = *ret_differences = 0;
    for (uint64_t i = 0; i < n_runs && length > 0; i++) {
        uint64_t first = part_start(view->n_elements - length, n_runs, i);
        if (!convert_values(view, first, length, values, error) || !convert_values(other, first, length, others, error))
            return false;
        for (uint64_t j = 0; j < length; j++) {
            double difference = (double)others[j] - (double)values[j];
            if (!isfinite(difference))
                continue;
            *ret_squares += (double)values[j] * (double)values[j];
            *ret_differences += difference * difference;
        }
    }
    return true;
}
