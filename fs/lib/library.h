/* Libraries of models (fs/tree/library.h): how they are found.
 *
 * A source is a model, or a directory of models: its entries that hold models, one level deeper too, so that a hub
 * cache and a folder PUBLISHER/NAME are such directories. The components of a pipeline are models, NAME-COMPONENT. Only
 * directories are listed: a model opens when somebody looks into its directory.
 *
 * A model's id is ORG/NAME if the source says so, as a repository or "ORG/NAME=SOURCE"; else local/NAME, or the folder
 * above it. */
#pragma once

#include "fs/options/options.h"

/* Returns the tree of the sources' models, or NULL. lib_close_tree() closes it. The options must outlive it. */
struct tree *library_open(const char *const *sources, size_t n_sources, const struct options *options,
                          struct error *error);

/* Splits "ORG/NAME=SOURCE"; an argument without '=', or one that begins like a path, is only a source. */
const char *library_split(const char *argument, struct arena *arena, const char **ret_id);

/* Returns the repository in a path of a hub cache or a URL of a hub, ORG/NAME; NULL: it has none. */
const char *library_repository(const char *source, struct arena *arena);
