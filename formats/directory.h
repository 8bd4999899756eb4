/* The directory of a model: its names, and its files opened so that no link leads out of it. */
#pragma once

#include "base/arena.h"
#include "formats/source.h"

/* The names in the directory that is open as `directory`, but for "." and "..", sorted as bytes, in `arena`. On failure errno
 * tells why. */
bool directory_names(int directory, struct arena *arena, const char *const **ret_names, size_t *ret_n_names);

/* As source_open(), but symbolic links are followed only to a file below the directory, or to the blobs of the same repository
 * where the directory is or is below a snapshot in a hub cache (models--ORG--NAME/snapshots/REVISION). */
struct source *directory_open_file(int directory, const char *path, const char *name, struct error *error);
