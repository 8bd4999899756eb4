/* Checks the quantization that a checkpoint declares.
 *
 * Tensors show most of a weight's packing; the configuration has the rest: the order of words, further factors. An
 * unknown value there may change any weight, so then no weight is unpacked. */
#pragma once

#include "models/packings/packing.h"

/* Returns the reason why no weight can be unpacked: the key and its value; NULL if all values are known. */
const char *declared_refusal(const struct packing_input *input);

/* Like declared_refusal(), for the declaration of one weight's layer. */
const char *declared_layer_refusal(const struct packing_input *input, const char *name);
