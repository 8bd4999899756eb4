/* Arithmetic in an element type as torch does it on a processor without arithmetic of that type: each operation is in
 * F32, and its result is rounded to the type, to nearest even. In F32 nothing more is rounded. All functions work in
 * place, and give the same bits at every processor level. */
#pragma once

#include "quant/views/combine.h"

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
