/* The loops of combine.h, for the compiler to vectorize: included by files compiled for a level, which define
 * COMBINE_KERNELS, the name of their table, and CUT_EIGHTS. */
#include "quant/views/combine.h"

static void with_one(enum combination op, float *values, size_t n, float other)
{
    switch (op) {
    case ADD:
        for (size_t i = 0; i < n; i++)
            values[i] += other;
        break;
    case SUBTRACT:
        for (size_t i = 0; i < n; i++)
            values[i] -= other;
        break;
    case MULTIPLY:
        for (size_t i = 0; i < n; i++)
            values[i] *= other;
        break;
    case DIVIDE:
        for (size_t i = 0; i < n; i++)
            values[i] /= other;
        break;
    }
}

static void with_each(enum combination op, float *restrict values, size_t n, const float *restrict others)
{
    switch (op) {
    case ADD:
        for (size_t i = 0; i < n; i++)
            values[i] += others[i];
        break;
    case SUBTRACT:
        for (size_t i = 0; i < n; i++)
            values[i] -= others[i];
        break;
    case MULTIPLY:
        for (size_t i = 0; i < n; i++)
            values[i] *= others[i];
        break;
    case DIVIDE:
        for (size_t i = 0; i < n; i++)
            values[i] /= others[i];
        break;
    }
}

const struct combine_kernels COMBINE_KERNELS = {with_one, with_each, CUT_EIGHTS};
