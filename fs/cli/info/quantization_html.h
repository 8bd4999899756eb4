/* The measurements of `wfs info --quantization` as a self-contained HTML page. */
#pragma once

#include "fs/lib/info/quantization.h"

struct quantization_report {
    const struct gguf_model *model;
    const struct quantization *rows;
    size_t n_rows;
    const struct weight_kind *kinds;
    size_t n_kinds;
    bool all, by_importance; /* all weights were measured; errors are weighted by importance */
};

/* Prints plots of error against size, error by layer and kind of tensor, the distribution of weights, and the table. */
void print_quantization_html(const struct quantization_report *report);
