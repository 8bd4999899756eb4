/* What a block type's scales are, to compare them with the values (codes_check.h). */
#pragma once

#include "quant/blocks/dtype.h"

enum { SCALE_FORM_MOST = 16 };

/* What the levels of a sub-block have to span: from 0 to the largest magnitude; from the lowest value, but at most 0,
 * to the highest; from the lowest to the highest. */
enum scale_span { SPAN_MAGNITUDE, SPAN_WITH_ZERO, SPAN_RANGE };

struct scale_form {
    enum scale_span span;
    int n_sub_blocks, n_steps;
    double least, most; /* limits of a scale, divided by the span over the steps */
    bool has_integers;  /* scales are integers times the F16 */

    /* Steps by which a code may lie beyond the middle between two levels: for any block; for each part by which the
     * scale changes when it is rounded to F16, because the tool's was not; and with an importance matrix. */
    double rounding, reach, loose;

    /* Gets the scales of the sub-blocks, and returns the F16 of which they are multiples. */
    float (*load)(const uint8_t *block, float scales[SCALE_FORM_MOST]);
};
