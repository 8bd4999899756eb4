/* Kinds of virtual content, and the one table of them (contents.c).
 *
 * A kind adds its files and directories to a new tree. What it adds first keeps the name: virtual files come before
 * side files in the table. To add one: `fs/tree/x_files.c` exporting `const struct content x_content`, and a row in the
 * table. */
#pragma once

#include "fs/tree/tree.h"

struct content {
    const char *name;
    const char *summary; /* for the documentation: "model.gguf in the source's own precision" */
    bool of_weights;     /* there is none of a checkpoint without any */
    bool (*add)(struct tree *tree, struct error *error);
};

/* NULL at the end. */
extern const struct content *const contents[];

/* A tree with nothing in it, for tree_new(), which adds all contents. */
struct tree *tree_empty(const struct checkpoint *checkpoint, const struct content_options *options);
