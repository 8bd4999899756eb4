/* Shared by PLaMo 2 and 3: norms before and after each block, and the MLP. */
#pragma once

#include "models/families/shared.h"

extern const struct relation_row plamo2_tensors[];
