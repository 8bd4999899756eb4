/* The sums of products (quant/views/product.h) for each processor level: terms in F64, where the product of two F32
 * numbers is exact, so that fused operations give the same sums. */
#pragma once

#include "quant/blocks/dtype.h"

/* Adds terms to n_rows rows of n_columns sums, the rows `stride` sums apart: sums[i][j] += left[i][k] * right[k][j],
 * for k from the first to the last. left [n_rows, rank] and right [rank, n_columns] have no gaps. */
typedef void add_terms_function(const float *left, const float *right, uint64_t n_rows, uint64_t rank,
                                uint64_t n_columns, double *sums, uint64_t stride);

extern add_terms_function add_terms_portable, add_terms_neon, add_terms_avx2, add_terms_avx512;

add_terms_function *add_terms_at(enum cpu_level level);
