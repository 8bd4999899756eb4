/* Kinds of virtual content, and the one table of them (contents.c).
 *
 * A kind adds its files and directories to a new tree, or is a product (products/product.h), which is shown by
 * product_files_add(). The first kind to add a name keeps it: virtual files come before side files in the table. A new
 * kind that is no product takes a file `fs/tree/x_files.c` that exports `const struct content x_files_content`, and
 * each takes a row in the table. */
#pragma once

#include "fs/tree/tree.h"
#include "products/product.h"

struct content {
    const struct product *product; /* NULL: the fields below describe it */
    const char *name;
    const char *summary; /* for the documentation: "model.gguf in the source's own precision" */
    bool of_weights;     /* left out if the checkpoint has no weights files, or lacks tensors: see of_parts */
    bool of_parts;       /* shown even if the checkpoint is known to lack tensors */
    bool (*add)(struct tree *tree, struct error *error);
};

/* In the order in which they are added; ends with NULL. */
extern const struct content *const contents[];

/* Adds the files of a product, if it is offered. */
bool product_files_add(struct tree *tree, const struct product *product, struct error *error);

/* Returns a tree that holds only its root, for tree_new(), which adds all contents. */
struct tree *tree_empty(const struct checkpoint *checkpoint, const struct content_options *options);
