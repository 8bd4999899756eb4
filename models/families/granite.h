/* What the Granite families share. */
#pragma once

#include "models/families/family.h"

extern const struct key_row granite_keys[];
extern const struct relation_row granite_moe_tensors[];
extern const struct key_row granite_moe_keys[];
