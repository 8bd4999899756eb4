/* F32 sums in torch's order for a contiguous tensor on one thread.
 *
 * Source: aten/src/ATen/native/cpu/SumKernel.cpp. On several threads, torch sums as many parts of more than 32768
 * numbers, and then their sums: its last bit depends on the machine. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    TORCH_SUM_LANES = 8,
    TORCH_SUM_VECTORS = 4,
    TORCH_SUM_LEVELS = 4,
    TORCH_SUM_STEP = TORCH_SUM_LANES * TORCH_SUM_VECTORS,
    TORCH_SUM_GROUP = 16
};

struct torch_sum {
    float at[TORCH_SUM_LEVELS][TORCH_SUM_VECTORS][TORCH_SUM_LANES];
    size_t n_steps;
    unsigned level_bits;
};

/* Begin a sum of n numbers; add a multiple of TORCH_SUM_STEP of them at a time; end it with the rest, and return it. */
void torch_sum_begin(struct torch_sum *sum, size_t n);
void torch_sum_add(struct torch_sum *sum, const float *values, size_t n);
float torch_sum_end(struct torch_sum *sum, const float *rest, size_t n_rest);

/* Like torch_sum_end(), with vectors that are left, and then single numbers. */
float torch_sum_end_vectors(struct torch_sum *sum, const float *vectors, size_t n_vectors, const float *rest,
                            size_t n_rest);

/* Returns the sum of fewer numbers than a vector has. */
float torch_sum_short(const float *values, size_t n);

/* Returns the sum of a few numbers, such as one for each of several models. */
float torch_sum_few(const float *values, size_t n);

/* Returns the sum of a column of stacked rows; its order depends on which of the columns it is. */
float torch_sum_column(const float *values, size_t n, uint64_t column, uint64_t n_columns);

/* Returns how many of the columns, from the first on, are summed in groups of TORCH_SUM_GROUP rows; in the others, four
 * sums take rows in turn. */
uint64_t torch_sum_grouped_columns(uint64_t n_columns);
