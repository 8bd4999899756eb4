/* What paths of this machine lead to, for those that make paths: the hub cache, the program's own files. */
#pragma once

#include "formats/location.h"

/* The kind of what a path leads to, all links followed; LOCATION_NOTHING also where that cannot be looked at. */
enum location_kind local_kind(const char *path);

/* Opens a file of this machine wherever it is. `name` is the source's name and begins the error. */
struct source *local_open_file(const char *path, const char *name, struct error *error);

/* The path from the root, without links. NULL where there is nothing at that path. */
const char *local_real_path(const char *path, struct arena *arena);
