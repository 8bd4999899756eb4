/* Reports whether what a checkpoint declares of its quantization is understood.
 *
 * Tensors tell most of how a weight is packed, and the configuration the rest: which of several orders its words have,
 * what else it is multiplied with. A word there that nobody here knows may change any value, so that no weight is
 * unpacked, whatever its tensors look like. */
#pragma once

#include "models/packings/packing.h"

/* Why no weight can be unpacked: the key and its value; NULL where all is understood. */
const char *declared_refusal(const struct packing_input *input);

/* Why the weight of that name cannot be, for what is declared of its layer alone; NULL where all is understood. */
const char *declared_layer_refusal(const struct packing_input *input, const char *name);
