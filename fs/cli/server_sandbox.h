/* The sandbox (base/sandbox.h) of commands that serve a mount. */
#pragma once

#include "fs/options/options.h"

/* Starts the opener of a server's sources, and enters the sandbox, before anything of a source is read and before
 * threads are started: no capabilities, no new files but by the opener and in the store, no network unless a source or
 * an option names a server. Clears the environment, unless the network needs it. */
bool enter_server_sandbox(const char *const *sources, size_t n, const struct options *options, struct error *error);
