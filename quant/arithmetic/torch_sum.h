/* F32 sums in torch's order for a contiguous tensor on one thread.
 *
 * Source: aten/src/ATen/native/cpu/SumKernel.cpp. On several threads, torch sums as many parts of more than 32768
 * numbers, and then their sums: its last bit depends on the machine. */
#pragma once

#include "quant/blocks/dtype.h"

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

/* Sums of BF16 numbers times weights, as torch adds them up: each number of the first term times its weight, the
 * others added by fused operations in F32, divided by the divisor, and rounded to BF16 at the end. One pass over the
 * terms, without F32 copies of them. All levels give the same results; NaN stays NaN, with any sign and payload. */

struct weighted_terms {
    const unsigned char *const *numbers; /* the BF16 numbers of each term, at any alignment */
    const float *weights;
    size_t n; /* at least 1 */
    float divisor;
};

/* Computes numbers [first, first + count) of the sum into `out`. */
typedef void weighted_sum_function(const struct weighted_terms *terms, size_t first, size_t count, unsigned char *out);
weighted_sum_function weighted_sum_portable, weighted_sum_neon,
    weighted_sum_avx2; /* for processors of their level only */

/* Returns the best of them for a level. */
weighted_sum_function *weighted_sum_at(enum cpu_level level);

/* Sums and norms of whole tensors, or rows, in torch's order on one thread, from values that come in pieces.
 *
 * Values are in F32; those of 16-bit types are added in another order. Results are not rounded to such a type. A norm
 * of very many values is visibly wrong in F32; it is reproduced. torch has no vectors for norms of F16, nor of values
 * that are apart in memory: it adds these squares one after the other.
 *
 * Source: torch, aten/src/ATen/native/cpu/SumKernel.cpp, and norm_two_reduce_step() in ReduceOpsKernel.cpp. */

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
