/* The source's side files in a tree. */
#pragma once

#include "fs/tree/tree.h"

/* Adds a side file, unchanged, and the directories of its name below `directory`. Returns false if a name is taken. */
bool side_files_add(struct tree *tree, node_id directory, const struct side_file *side);
