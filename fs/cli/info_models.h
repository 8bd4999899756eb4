/* Pages of `wfs info` that are about GGUF: the families that are known, and what each quantization of a model would be like. */
#pragma once

#include "formats/checkpoint.h"
#include "models/quantize.h"

/* The table of families: architectures of Hugging Face, and the GGUF one each becomes. */
void print_architectures(void);

/* Bits per weight, size of the file, root mean square and largest error of every quantization; of all weights with `all`, else of
 * a sample. A bar on a terminal while it works. */
bool print_quantizations(const struct checkpoint *checkpoint, const struct quantize_options *options, bool all,
                         struct error *error);
