/* The sandbox (base/sandbox.h) of commands that serve a mount. */
#pragma once

#include "fs/options/options.h"

#include <stdint.h>

/* Enters the sandbox before threads are started, with the paths of open_command_paths() (fs/cli/command_sandbox.h). The
 * server may still remove `mountpoint`. Clears the environment, unless a network needs it. `capabilities` are kept
 * besides those for files and passthrough. */
void enter_server_sandbox(int paths, const struct options *options, const char *mountpoint, uint64_t capabilities);
