/* Sums in F32 in the order of torch: that of a contiguous tensor on one thread.
 *
 * Source: aten/src/ATen/native/cpu/SumKernel.cpp. On more threads torch sums as many parts of more than 32768 numbers,
 * and then those sums: the last bit goes by the machine, there as well. */
#pragma once

#include <stddef.h>

enum { SUM_LANES = 8, SUM_VECTORS = 4, SUM_LEVELS = 4, SUM_STEP = SUM_LANES * SUM_VECTORS };

struct sum {
    float at[SUM_LEVELS][SUM_VECTORS][SUM_LANES];
    size_t n_steps;
    unsigned level_bits;
};

/* For n numbers, which come a multiple of SUM_STEP at a time, and the rest of them at the end. */
void sum_begin(struct sum *sum, size_t n);
void sum_add(struct sum *sum, const float *values, size_t n);
float sum_end(struct sum *sum, const float *rest, size_t n_rest);
