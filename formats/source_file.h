/* Sources that are regular files: for the location that finds them (location_local.c), and nobody else. */
#pragma once

#include "formats/source.h"

#include <sys/stat.h>

/* openat() with O_CLOEXEC, which raises the soft limit of descriptors where that is reached. */
int source_file_open_at(int directory, const char *path, int flags);

/* Opens the regular file that a descriptor without access (O_PATH) stands for, which the caller closes. `name` is what
 * messages call the source. NULL on failure. */
struct source *source_file_open(int found, const char *name, struct error *error);

struct source_identity source_file_identity(const struct stat *status);
