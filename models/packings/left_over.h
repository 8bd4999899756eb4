/* Tensors of packed modules that no packing uses: they may belong to the values, so their weights are refused. */
#pragma once

#include "models/packings/packings.h"

/* Refuses each packed weight whose module has a tensor besides its parts, its bias, and those that change no weight. */
void left_over_refuse(const struct packing_input *input, struct unpacked_weights *found);

/* Reports whether a tensor beside packed weights changes none, because it is for activations or marks a file. Then
 * *ret_methods, if not NULL, has the methods whose converter leaves it out by itself, up to a NULL, at most 2. */
bool left_over_is_harmless(const struct tensor *tensor, const char *const **ret_methods);
