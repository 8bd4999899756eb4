/* The trees of components. */
#pragma once

#include "formats/components.h"
#include "fs/tree/tree.h"

/* Returns the tree of a component, and opens it if necessary; NULL if the component is not shown or cannot be opened.
 * The caller must not free it. */
struct tree *tree_of_component(struct tree *tree, const struct component *component);
