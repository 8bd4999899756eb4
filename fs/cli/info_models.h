/* Pages of `wfs info` that are about GGUF: the families that are known, and what each quantization of a model would be
 * like. */
#pragma once

#include "formats/checkpoint.h"
#include "models/quantize/quantize.h"

/* The table of families: architectures of Hugging Face, and the GGUF one each becomes. */
void print_architectures(void);
void print_architectures_json(void);

struct quantization_page {
    bool all; /* weights are measured, not a sample */
    bool json, html, colour;
};

/* Size, bits per weight and error of every quantization, a word for the loss, and the one that is recommended. A bar on
 * a terminal while it works. */
bool print_quantizations(const struct checkpoint *checkpoint, const struct quantize_options *options,
                         const struct quantization_page *page, struct error *error);
