/* Checks the quantization that a checkpoint declares.
 *
 * Tensors tell most of how a weight is packed, and the configuration the rest: the order of words, further factors. An
 * unknown value in it may change any weight, so no weight is unpacked then. */
#pragma once

#include "models/packings/packing.h"

/* Returns the reason why no weight can be unpacked: the key and its value; NULL if all values are known. */
const char *declared_refusal(const struct packing_input *input);

/* Like declared_refusal(), for the declaration of one weight's layer. */
const char *declared_layer_refusal(const struct packing_input *input, const char *name);
