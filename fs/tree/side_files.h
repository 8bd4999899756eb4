/* A side file in the tree, at the top or in another directory, which may be several below `directory`: false where its
 * name is taken. */
#pragma once

#include "fs/tree/tree.h"

bool side_files_add(struct tree *tree, node_id directory, const struct side_file *side);
