/* The trees of components. */
#pragma once

#include "formats/components.h"
#include "fs/tree/tree.h"

/* That of a component of the tree's checkpoint, opened now if it has not been; NULL where it is not shown. It is the
 * tree's. */
struct tree *tree_of_component(struct tree *tree, const struct component *component);
