/* The kept bytes of a tree's files (kept.h), by node: made when a file is first read, and kept until the tree is freed.
 * Safe from any thread. */
#pragma once

#include "fs/tree/tree.h"

struct kept_files;

struct kept_files *kept_files_new(void);

/* Call it before the sources are closed. NULL is allowed. */
void kept_files_free(struct kept_files *files);

/* Returns what is kept of a file of the tree, which is planned and belongs to no branch; NULL: nothing ever is. */
struct kept *kept_files_get(struct kept_files *files, struct tree *tree, node_id id, const struct vfile *file);
