/* Paths of this machine, for code that makes paths: the hub cache, the program's own files. */
#pragma once

#include "sources/location.h"

/* Returns the kind of a path's target, all links followed; LOCATION_NOTHING also if it cannot be determined. */
enum location_kind local_kind(const char *path);

/* Opens a file of this machine, following any link. `name` is the source's name and begins its read errors. */
struct source *local_open_file(const char *path, const char *name, struct error *error);

/* Returns the absolute path without links, or NULL if nothing is at that path. */
const char *local_real_path(const char *path, struct arena *arena);
