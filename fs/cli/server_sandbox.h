/* The sandbox of the commands that serve a mount. */
#pragma once

#include "fs/options/options.h"

#include <stdint.h>

/* Opens the paths of the sandbox (base/sandbox.h): reads only what the source and its options name, and the hub cache,
 * and writes only to the store. Call it when the sources are open, before they are mounted. Returns 0 for a source on a
 * server, a recipe, a directory of models, or links that may lead anywhere: then all paths can be used. */
int open_server_paths(const struct checkpoint *checkpoint, const struct options *options);

/* Enters the sandbox before threads are started. The server may still remove `mountpoint`. Clears the environment,
 * unless a network needs it. `capabilities` are kept besides those for files and passthrough. */
void enter_server_sandbox(int paths, const struct options *options, const char *mountpoint, uint64_t capabilities);
