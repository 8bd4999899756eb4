/* The kernels of unpack.h for each processor level: arithmetic on runs of F32, in place, rounding every operation, and
 * cutting words into fields. All levels give the same results. */
#pragma once

#include "quant/views/unpack.h"

struct combine_kernels {
    void (*with_one)(enum combination op, float *values, size_t n, float other);
    void (*with_each)(enum combination op, float *values, size_t n, const float *others);

    /* Cuts words of four bytes, with eight fields each, into a byte for each field. NULL: not at this level. */
    void (*cut_eights)(const struct fields *fields, const unsigned char *words, size_t n_words, unsigned char *out);
};

extern const struct combine_kernels combine_portable, combine_neon, combine_avx2, combine_avx512;

/* Return the best kernels for this processor, and for a level. */
const struct combine_kernels *combine_kernels(void);
const struct combine_kernels *combine_kernels_at(enum cpu_level level);

/* Arithmetic in an element type as torch does it on a processor without arithmetic of that type: each operation is in
 * F32, and its result is rounded to the type, to nearest even. In F32 nothing more is rounded. All functions work in
 * place, and give the same bits at every processor level. */

struct rounded {
    const struct dtype *dtype; /* F32, F16 or BF16 */
    const struct combine_kernels *kernels;
    void (*round)(float *values, size_t n); /* NULL: nothing to round */
};

/* Returns the arithmetic of `dtype` with the kernels of this processor. */
struct rounded rounded_in(const struct dtype *dtype);

/* Rounds F32 values. */
void rounded_values(const struct rounded *in, float *values, size_t n);

/* Replaces values[i] by values[i] op others[i], or by values[i] op other. */
void rounded_each(const struct rounded *in, enum combination op, float *values, size_t n, const float *others);
void rounded_one(const struct rounded *in, enum combination op, float *values, size_t n, float other);

/* Returns a number rounded to F32, and then to the type. */
float rounded_number(const struct dtype *dtype, double number);
