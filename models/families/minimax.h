/* What MiniMax M2 and M3 share. */
#pragma once

#include "models/families/family.h"

extern const struct relation_row minimax_tensors[];
extern const struct key_row minimax_keys[]; /* after base_keys */
