/* Pages of `wfs info` about GGUF: the known families, and the size and error of each quantization of a model. */
#pragma once

#include "base/error.h"

/* Print the table of families: Hugging Face's classes, and the GGUF architecture for each. */
void print_architectures(void);
void print_architectures_json(void);

struct quantization_page {
    bool all; /* measure all weights, not a sample */
    bool json, html, colour;
};

/* Prints size, bits per weight, error and a word for the loss of every quantization, and recommends one. Shows its
 * progress on a terminal. Fails for adapters and for unknown families. */
struct tree;
bool print_quantizations(const struct tree *tree, const struct quantization_page *page, struct error *error);
