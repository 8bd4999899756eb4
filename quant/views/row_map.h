/* A matrix of rows from several matrices: an embedding for another vocabulary.
 *
 * Each row is one of a table, zero, or a mean of rows; the last ones may be the mean of all rows before them, which the
 * first read of such a row computes. As in view.h, shapes are the program's own and are asserted, and views live in the
 * arena; the map and the findings must live as long as they do. Source: mergekit, tokenizer/embed.py; torch,
 * SumKernel.cpp. */
#pragma once

#include "quant/views/finding.h"
#include "quant/views/view.h"

#include <stdint.h>

/* Special values of row_place.table. */
enum { ROW_ZERO = -1, ROW_MEAN = -2 };

struct row_place {
    int32_t table; /* its index, ROW_ZERO, or ROW_MEAN */
    uint32_t row;  /* of the table; of a mean its index */
};

/* Rows whose mean is a row: added one by one and divided, each operation rounded to the dtype. */
struct row_mean {
    const struct row_place *places; /* of tables */
    size_t count;
};

struct row_map {
    const struct row_place *places;
    uint64_t n_rows;
    const struct row_mean *means;
    uint64_t n_padding; /* rows after these, each the mean of all of them */
};

/* Returns the rows of the map in `dtype`: F32, F16 or BF16. Tables are matrices of one width, or NULL if the map does
 * not name them; their values are converted to `dtype` first. */
const struct view *view_map_rows(struct arena *arena, const struct dtype *dtype, const struct view *const *tables,
                                 size_t n_tables, const struct row_map *map, struct findings *findings);
