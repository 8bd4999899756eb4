/* What PLaMo 2 and 3 share: norms before and after what they are about, and the MLP. */
#pragma once

#include "models/families/family.h"

extern const struct relation_row plamo2_tensors[];
