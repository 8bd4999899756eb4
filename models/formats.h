/* The table of all formats, which programs pass to checkpoint_open(). */
#pragma once

#include "formats/format.h"

/* NULL at the end. */
extern const struct format *const formats[];
