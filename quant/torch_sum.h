/* Sums in F32 in the order of torch: that of a contiguous tensor on one thread.
 *
 * Source: aten/src/ATen/native/cpu/SumKernel.cpp. On more threads torch sums as many parts of more than 32768 numbers,
 * and then those sums: the last bit goes by the machine, there as well. */
#pragma once

#include <stddef.h>

enum {
    TORCH_SUM_LANES = 8,
    TORCH_SUM_VECTORS = 4,
    TORCH_SUM_LEVELS = 4,
    TORCH_SUM_STEP = TORCH_SUM_LANES * TORCH_SUM_VECTORS
};

struct torch_sum {
    float at[TORCH_SUM_LEVELS][TORCH_SUM_VECTORS][TORCH_SUM_LANES];
    size_t n_steps;
    unsigned level_bits;
};

/* For n numbers, which come a multiple of TORCH_SUM_STEP at a time, and the rest of them at the end. */
void torch_sum_begin(struct torch_sum *sum, size_t n);
void torch_sum_add(struct torch_sum *sum, const float *values, size_t n);
float torch_sum_end(struct torch_sum *sum, const float *rest, size_t n_rest);
