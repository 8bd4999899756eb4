/* What an encoding changes in values: sums over as many runs as are measured. */
#pragma once

#include <stddef.h>

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
