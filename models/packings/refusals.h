/* Why weights stay packed: what a quantization_config declares, and tensors that no packing uses.
 *
 * Tensors show most of a weight's packing; the configuration has the rest: the order of words, further factors. What it
 * says may change any weight, so under a key or a value that wfs does not know no weight is unpacked. */
#pragma once

#include "models/packings/packings.h"

/* Returns the reason why no weight can be unpacked: the key and its value; NULL if all values are known. */
const char *declared_refusal(const struct packing_input *input);

/* Like declared_refusal(), for the declaration of one weight's layer. */
const char *declared_layer_refusal(const struct packing_input *input, const char *name);

/* Like declared_refusal(), for a key that is neither read nor known to change nothing, of quantization_config or of one
 * of its groups. Values that switch an option off count as absent: null, false, "", [] and {}. */
const char *known_keys_refusal(const struct packing_input *input);

/* Refuses each packed weight whose module has a tensor besides its parts, its bias, and those that change no weight: it
 * may belong to the values. */
void left_over_refuse(const struct packing_input *input, struct unpacked_weights *found);

/* Reports whether a tensor beside packed weights changes none, because it is for activations or marks a file. Then
 * *ret_methods, if not NULL, has the methods whose converter leaves it out by itself, up to a NULL, at most 2. */
bool left_over_is_harmless(const struct tensor *tensor, const char *const **ret_methods);
