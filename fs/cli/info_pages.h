/* Pages of `wfs info` about a source: the one that fits a screen, its lists, and both as JSON. */
#pragma once

#include "fs/cli/profile.h"
#include "fs/tree/tree.h"

/* Prints the source, the files read, the files of a mount and the files left out. On a terminal it breaks lines at
 * words and shortens long lists, but no message. */
void print_summary(struct tree *tree, const struct profile *profile, bool colour);

/* Metadata, types, the largest tensors, every file, every type that tensors are shown in, what is not shown. */
void print_lists(struct tree *tree, const struct profile *profile);

void print_info_json(struct tree *tree, const struct profile *profile);
