/* What the Granite families share. */
#pragma once

#include "models/families/family.h"

extern const struct key_row granite_keys[];
extern const struct relation_row granite_moe_tensors[];
extern const struct key_row granite_moe_keys[];

/* Leaves out what sees and hears of Granite 4 Vision and Granite Speech. */
const char *granite_without_towers(struct arena *arena, const struct facts *facts, enum direction direction,
                                   const char *name);
