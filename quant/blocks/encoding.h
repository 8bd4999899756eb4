/* Encodings: a dtype with the rule and the importance that its encoder uses.
 *
 * Most dtypes have one encoder. A rule is another encoder for the same blocks. Many encoders can also weight errors by
 * the importance of columns. */
#pragma once

#include "quant/blocks/dtype.h"

#include <stddef.h>

struct rule {
    const char *name;
    encode_function *encode[CPU_LEVELS]; /* a missing level falls back to the lower one, as for dtypes */
};

struct encoding {
    const struct dtype *dtype;
    const struct rule *rule; /* NULL: the dtype's own */

    /* How much each column of a tensor's rows matters: those of the first matrix, of the second ..., since stacked
     * matrices (experts) have columns of their own. NULL: all columns matter alike. */
    const float *importance;

    const char *tensor; /* name, for messages; NULL: unknown */
};

/* Returns the encoding of `dtype` with its own encoder and no importance. */
static inline struct encoding encoding_of(const struct dtype *dtype)
{
    return (struct encoding){.dtype = dtype};
}

/* Returns the best kernels at `level` or below; encode_weighted is NULL if the encoding has no importance. */
struct kernels encoding_kernels_at(struct encoding encoding, enum cpu_level level);

/* Returns the best kernels for this processor. */
struct kernels encoding_kernels(struct encoding encoding);

/* Q4_0 as some engines quantize at load time: d = amax / 7, round half away from zero, clamp to -8..7. */
extern const struct rule q4_0_absmax7_rule;

/* What an encoding changes in values: sums over as many runs as are measured. */
struct loss {
    double squares; /* of the differences */
    double values;  /* squares of the exact values */
    double weights; /* of all elements, which the other two sums are weighted by; without weights each element has 1 */
    double largest; /* difference, not weighted */
};

/* Adds `n` values and what they became. `weights` has one for each; NULL: all are 1. */
void loss_add(struct loss *loss, const float *exact, const float *stored, size_t n, const float *weights);

/* Returns the root mean square of the differences as a share of that of the values; 0 if all values are 0. */
double loss_relative(const struct loss *loss);
