/* The rows of the table of codings (coding.c), by file; each ends with one without a name. */
#pragma once

#include "sources/archive/coding.h"

extern const struct coding planes_codings[], fields_codings[], codes_codings[], computed_codings[], scaled_codings[],
    difference_codings[];
