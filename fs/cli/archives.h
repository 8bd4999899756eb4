/* The checksums of zip archives: those of torch and numpy. */
#pragma once

#include "formats/checkpoint.h"

enum archives { ARCHIVES_NONE, ARCHIVES_WHOLE, ARCHIVES_DAMAGED };

/* Reports whether a file begins as a zip archive does. */
bool is_archive(const struct source *source);

/* Reads every member of an archive and compares its CRC. Prints a line on stdout for the archive and reports each
 * damaged member; shows the progress on a terminal. */
enum archives check_archive(const struct source *source);

/* Checks all archives among a checkpoint's files of weights; ARCHIVES_NONE where it has none. */
enum archives check_archives(const struct checkpoint *checkpoint);
