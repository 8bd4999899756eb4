/* Pages of `wfs info` about a source: the one that fits a screen, its lists, and both as JSON. */
#pragma once

#include "fs/cli/profile.h"
#include "fs/tree/tree.h"

/* What it is, what was read and what is left out, what a mount shows. On a terminal it has at most 24 lines of its
 * width. */
void print_summary(struct tree *tree, const struct profile *profile, bool colour);

/* Metadata, types, the largest tensors, every file, every type that tensors are shown in, what is not shown. */
void print_lists(struct tree *tree, const struct profile *profile);

void print_info_json(struct tree *tree, const struct profile *profile);
