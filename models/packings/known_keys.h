/* The keys of quantization_config that wfs knows.
 *
 * What a packing says beside its codes may change any weight, such as a rotation of inputs. So no weight is unpacked
 * under a configuration with a key that is neither read nor known to change nothing. */
#pragma once

#include "models/packings/packing.h"

/* Returns the reason why no weight can be unpacked: a key that is not known, of quantization_config or of one of its
 * groups; NULL: all are known. Values that switch an option off count as absent: null, false, "", [] and {}. */
const char *known_keys_refusal(const struct packing_input *input);
