/* Shared by the Granite families. */
#pragma once

#include "models/families/shared.h"

extern const struct key_row granite_keys[];
extern const struct relation_row granite_moe_tensors[];
extern const struct key_row granite_moe_keys[];

/* Leaves out the vision encoder of Granite 4 Vision and the audio encoder of Granite Speech; for family.rename. */
const char *granite_without_towers(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                   const char *name);
