/* Sums and norms of whole tensors, or rows, in torch's order on one thread, from values that come in pieces.
 *
 * Values are in F32; those of 16-bit types are added in another order. Results are not rounded to such a type. A norm
 * of very many values is visibly wrong in F32; it is reproduced. torch has no vectors for norms of F16, nor of values
 * that are apart in memory: it adds these squares one after the other.
 *
 * Source: torch, aten/src/ATen/native/cpu/SumKernel.cpp, and norm_two_reduce_step() in ReduceOpsKernel.cpp. */
#pragma once

#include "quant/arithmetic/torch_sum.h"
#include "quant/blocks/dtype.h"

enum { TORCH_PIECE = 2 * TORCH_SUM_STEP };

/* Values that wait until there are TORCH_PIECE of them. */
struct torch_held {
    float values[TORCH_PIECE];
    size_t n;
};

/* A sum of values. */
struct torch_total {
    struct torch_sum sum;
    struct torch_held held;
    bool halves; /* the values are of a 16-bit type */
    bool small;  /* they are fewer than a vector has */
};

/* Begin a sum of n values, add all of them, and return it. */
void torch_total_begin(struct torch_total *total, const struct dtype *dtype, uint64_t n);
void torch_total_add(struct torch_total *total, const float *values, size_t n);
float torch_total_end(struct torch_total *total);

/* The root of a sum of squares. */
struct torch_norm {
    float lanes[TORCH_SUM_LANES];
    struct torch_held held;
    bool halves, in_turn; /* in_turn: squares are added one after the other */
};

void torch_norm_begin(struct torch_norm *norm, const struct dtype *dtype);
void torch_norm_begin_apart(struct torch_norm *norm); /* of values that are apart in memory, such as a column's */
void torch_norm_add(struct torch_norm *norm, const float *values, size_t n);
float torch_norm_end(struct torch_norm *norm);

/* Return the sum, and the norm, of values that are there. */
float torch_total_of(const struct dtype *dtype, const float *values, size_t n);
float torch_norm_of(const struct dtype *dtype, const float *values, size_t n);
