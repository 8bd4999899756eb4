/* Pages of `wfs info` about a source: one that fits a screen, and its lists. */
#pragma once

#include "fs/lib/info/profile.h"
#include "fs/tree/tree.h"

/* Prints the source, the files read, the files of a mount and the files left out. On a terminal, breaks lines at words
 * and shortens long lists, but no message. */
void print_summary(struct tree *tree, const struct profile *profile, bool colour);

/* Prints metadata, types, the largest tensors, all files, the types of tensor files, and everything left out. */
void print_lists(struct tree *tree, const struct profile *profile);

/* Prints the models of a library, none of which is opened. */
void print_library(struct tree *tree, const char *source);
