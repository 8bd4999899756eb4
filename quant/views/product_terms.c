/* Compiled once for each level, for the compiler to vectorize: with LEVEL, the level's name, or without for the
 * portable one.
 *
 * Four terms at a time share one read and write of a sum; four rows share the conversion of a term to F64; the sums of
 * COLUMNS columns stay in the first-level cache. */
#include "quant/views/product.h"

#ifdef LEVEL
#define NAME_OF(level)  add_terms_##level
#define NAME(level)     NAME_OF(level)
#define ADD_TERMS       NAME(LEVEL)
#define TERM(a, b, sum) __builtin_fma(a, b, sum)
#else
#define ADD_TERMS       add_terms_portable
#define TERM(a, b, sum) ((sum) + (double)(a) * (double)(b))
#endif

enum { COLUMNS = 512 };

#define FOUR_TERMS(f, sum) TERM((f)[3], d, TERM((f)[2], c, TERM((f)[1], b, TERM((f)[0], a, sum))))

static void add_to_four_rows(double *restrict first, double *restrict second, double *restrict third,
                             double *restrict fourth, const float *restrict right, uint64_t width, const float *left,
                             uint64_t rank, uint64_t n)
{
    double factors[4][4];
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < 4; k++)
            factors[i][k] = left[i * rank + k];
    for (uint64_t j = 0; j < n; j++) {
        const double a = right[j], b = right[width + j], c = right[2 * width + j], d = right[3 * width + j];
        first[j] = FOUR_TERMS(factors[0], first[j]);
        second[j] = FOUR_TERMS(factors[1], second[j]);
        third[j] = FOUR_TERMS(factors[2], third[j]);
        fourth[j] = FOUR_TERMS(factors[3], fourth[j]);
    }
}

static void add_to_row(double *restrict sums, const float *restrict right, uint64_t width, const float *left,
                       uint64_t n)
{
    const double factors[4] = {left[0], left[1], left[2], left[3]};
    for (uint64_t j = 0; j < n; j++) {
        const double a = right[j], b = right[width + j], c = right[2 * width + j], d = right[3 * width + j];
        sums[j] = FOUR_TERMS(factors, sums[j]);
    }
}

static void add_term(double *restrict sums, const float *restrict right, double factor, uint64_t n)
{
    for (uint64_t j = 0; j < n; j++)
        sums[j] = TERM(factor, right[j], sums[j]);
}

/* Adds terms to up to four rows and COLUMNS columns. */
static void add_to_block(const float *left, const float *right, uint64_t width, uint64_t n_rows, uint64_t rank,
                         uint64_t n, double *sums, uint64_t stride)
{
    uint64_t k = 0;
    for (; k + 4 <= rank; k += 4, right += 4 * width)
        if (n_rows == 4)
            add_to_four_rows(sums, sums + stride, sums + 2 * stride, sums + 3 * stride, right, width, left + k, rank,
                             n);
        else
            for (uint64_t i = 0; i < n_rows; i++)
                add_to_row(sums + i * stride, right, width, left + i * rank + k, n);
    for (; k < rank; k++, right += width)
        for (uint64_t i = 0; i < n_rows; i++)
            add_term(sums + i * stride, right, left[i * rank + k], n);
}

void ADD_TERMS(const float *left, const float *right, uint64_t n_rows, uint64_t rank, uint64_t n_columns, double *sums,
               uint64_t stride)
{
    for (uint64_t i = 0; i < n_rows; i += 4)
        for (uint64_t j = 0; j < n_columns; j += COLUMNS)
            add_to_block(left + i * rank, right + j, n_columns, n_rows - i < 4 ? n_rows - i : 4, rank,
                         n_columns - j < COLUMNS ? n_columns - j : COLUMNS, sums + i * stride + j, stride);
}

#ifndef LEVEL
add_terms_function *add_terms_at(enum cpu_level level)
{
#if defined(__x86_64__)
    if (level >= CPU_AVX512)
        return add_terms_avx512;
    if (level >= CPU_AVX2)
        return add_terms_avx2;
#elif defined(__aarch64__)
    if (level >= CPU_NEON)
        return add_terms_neon;
#endif
    return add_terms_portable;
}
#endif
