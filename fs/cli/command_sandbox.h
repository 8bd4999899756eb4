/* The sandbox (base/sandbox.h) of commands: which paths they need, once their sources are open. */
#pragma once

#include "fs/options/options.h"

#include <stdint.h>

/* Opens the paths of the sandbox: reads only what the sources and the options name, and the hub cache, and writes only
 * to the store and to `destination`, NULL: nowhere else. Call it when all sources are open, before they are mounted.
 * Returns 0 for a source on a server, a recipe, a directory of models, or links that may lead anywhere: then all paths
 * can be used. */
int open_command_paths(const struct checkpoint *const *checkpoints, size_t n, const struct options *options,
                       const char *destination);

/* Leaves only those paths to a command that is in the sandbox already. */
void confine_command(const struct checkpoint *const *checkpoints, size_t n, const struct options *options,
                     const char *destination);
void confine_to_source(const struct checkpoint *checkpoint, const struct options *options);
