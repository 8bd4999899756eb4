/* Shared by MiniMax M2 and M3. */
#pragma once

#include "models/families/shared.h"

extern const struct relation_row minimax_tensors[];
extern const struct key_row minimax_keys[]; /* after base_keys */
