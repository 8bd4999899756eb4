/* What the Granite families share. */
#pragma once

#include "formats/gguf/arch/arch.h"

extern const struct key_row granite_keys[];
