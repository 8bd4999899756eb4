/* What `wfs verify` checks besides files of models: statements (verify_attestation.c) and zip archives (archives.c). */
#pragma once

#include "base/error.h"
#include "fs/cli/command.h"

/* `wfs verify --attestation FILE SOURCE`. */

/* Makes the statement in the file `path` again from the source that the only operand names, reports every file that
 * differs, and returns the exit status: 0 if none does, 1 if one does, 2 if the statements cannot be compared. */
int verify_attestation(const char *path, const struct invocation *invocation);

/* Checking the checksums in zip archives: torch and numpy files. */

enum archives { ARCHIVES_NONE, ARCHIVES_WHOLE, ARCHIVES_DAMAGED };

/* Checks a zip archive itself, or the archives among the weights files of a directory or a hub folder: reads every
 * member and compares its CRC. Prints a line on stdout for each archive, reports each damaged member, and shows the
 * progress on a terminal. Returns the worst result; ARCHIVES_NONE, with the reason: no archives. */
enum archives check_named_archives(const char *name, struct error *error);

/* Checks all archives among a checkpoint's weights files, like check_named_archives(). */
struct checkpoint;
enum archives check_archives(const struct checkpoint *checkpoint);
