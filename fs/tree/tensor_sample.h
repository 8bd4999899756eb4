/* A tensor at a glance: statistics, a histogram, a map of one of its matrices and the errors of quantizing it, from a
 * sample of ranges that takes bounded time whatever the tensor's size.
 *
 * The sample of a matrix has SAMPLE_ROWS of its rows at most, evenly spread, and of each row SAMPLE_COLUMNS runs of
 * SAMPLE_RUN values at most: a matrix of up to 64 by 4096 is read whole. Rows are read in an order that spreads over
 * the matrix from the start, so that a sample that ran out of time is still one of all parts. A tensor of one dimension
 * is a matrix of one row; dimensions before the last two number matrices. */
#pragma once

#include "quant/views/view.h"

enum { SAMPLE_ROWS = 64, SAMPLE_COLUMNS = 64, SAMPLE_RUN = 64, SAMPLE_BINS = 60 };

struct tensor_sample {
    uint64_t matrices, rows, columns;    /* the tensor's */
    unsigned n_rows, n_columns, n_taken; /* of the map; rows of it that were read in time */
    uint64_t n_values, n_zeros, n_nan, n_infinite;
    /* of the finite values; 0 without any */
    double least, largest, mean, deviation;
    /* The number of finite values in each of SAMPLE_BINS equal bins from bins_from to bins_to, which are the mean plus
     * and minus at most 6 deviations, and include the values further out. */
    uint64_t bins[SAMPLE_BINS];
    double bins_from, bins_to;
    /* The root mean square of the run of each cell, row by row; NAN: a value is not finite; -1: not read in time. */
    float cells[SAMPLE_ROWS * SAMPLE_COLUMNS];
    float largest_cell;
};

/* Samples matrix number `matrix`, below the product of the dimensions before the last two, of a view that can be shown
 * as F32 (convert_possible()). Begins no read after `seconds`. Fails if a range cannot be read. */
bool tensor_sample(const struct view *view, uint64_t matrix, double seconds, struct tensor_sample *ret_sample,
                   struct error *error);

/* The error of a type for a tensor: the root mean square of what it changes, divided by that of the values. */
struct type_error {
    const struct dtype *type;
    double relative_error;
};

/* Measures the types of blocks that need no importance matrix, in 16 runs of up to 1024 values of whole blocks of 256,
 * spread over all matrices. Returns their number, at most `most`, the type of fewest bits first; 0 if a row has no such
 * block, or a value of the runs is not finite. Begins no read or type after `seconds`. */
size_t tensor_type_errors(const struct view *view, double seconds, struct type_error *errors, size_t most,
                          struct error *error);

/* Gets sums over the same runs of two views of equal shape, which can be shown as F32: the squares of the first one's
 * values, and those of the differences. At most 4 runs of 256 values, evenly spread; what is not finite in either is
 * left out. Fails if a range cannot be read. */
bool tensor_difference(const struct view *view, const struct view *other, double *ret_squares, double *ret_differences,
                       struct error *error);
