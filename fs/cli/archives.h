/* Checking the checksums in zip archives: torch and numpy files. */
#pragma once

#include "formats/checkpoint.h"

enum archives { ARCHIVES_NONE, ARCHIVES_WHOLE, ARCHIVES_DAMAGED };

/* Reports whether a file can be read and begins as a zip archive does. */
bool is_archive(const struct source *source);

/* Reads every member of an archive and compares its CRC. Prints a line on stdout for the archive, if its directory can
 * be read; reports each damaged member, and shows the progress on a terminal. Never returns ARCHIVES_NONE. */
enum archives check_archive(const struct source *source);

/* Checks all archives among a checkpoint's weights files. Returns the worst result; ARCHIVES_NONE: no archives. */
enum archives check_archives(const struct checkpoint *checkpoint);
