/* `wfs verify --attestation FILE SOURCE`. */
#pragma once

#include "fs/cli/command.h"

/* Makes the statement in the file `path` again from the source that the only operand names, reports every file that
 * differs, and returns the exit status: 0 if none does, 1 if one does, 2 if the statements cannot be compared. */
int verify_attestation(const char *path, const struct invocation *invocation);
