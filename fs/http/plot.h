/* Axes of plots: ticks at round numbers. */
#pragma once

/* Returns the step between ticks, 1, 2 or 5 times a power of ten, that gives at most `most` of them in the range from
 * 0 to `span`, which is above 0 and finite. Ticks are at the multiples of the step. */
double plot_step(double span, int most);
