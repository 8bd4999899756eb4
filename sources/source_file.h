/* Sources that are regular files: for location_local.c, which finds them, alone. */
#pragma once

#include "sources/source.h"

#include <sys/stat.h>

/* Calls opener_open_at(); raises the soft limit of descriptors when it is reached. */
int source_file_open_at(int directory, const char *path, int flags);

/* Opens the regular file that a descriptor has found (system_find_flags), which the caller closes. Messages call the
 * source `name`. Returns NULL on failure. */
struct source *source_file_open(int found, const char *name, struct error *error);

struct source_identity source_file_identity(const struct stat *status);
