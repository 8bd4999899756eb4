/* Paths: of this machine (location_local.c); in the hub cache, and those that files name (paths.c). */
#pragma once

#include "base/arena.h"
#include "sources/location.h"

#include <stdbool.h>
#include <stddef.h>

/* Paths of this machine, for code that makes paths: the hub cache, the program's own files. */

/* Returns the kind of a path's target, all links followed; LOCATION_NOTHING also if it cannot be determined. */
enum location_kind local_kind(const char *path);

/* Opens a file of this machine, following any link. `name` is the source's name and begins its read errors. */
struct source *local_open_file(const char *path, const char *name, struct error *error);

/* Returns the absolute path without links, or NULL if nothing is at that path. */
const char *local_real_path(const char *path, struct arena *arena);

/* Paths in the local hub cache (hub_cache.h), whether or not they exist, in the arena. */

#define HUB_CACHE_PREFIX "models--"

const char *hub_cache_directory(struct arena *arena);

/* Returns the folder of ORG/NAME or NAME. */
const char *hub_cache_folder(struct arena *arena, const char *id);

/* Calls `each` with the name of every model in the cache, ORG/NAME or NAME, sorted by folder. */
void hub_cache_each(void (*each)(void *context, const char *id), void *context);

/* Reports whether the text consists of at most `most_slashes` + 1 components of the characters of hub names, none
 * beginning with a dot. */
bool hub_name_fits(const char *text, size_t length, size_t most_slashes);

/* Returns the path of the blob with that hash in a repository; NULL if the file does not exist. */
const char *hub_cache_blob(struct arena *arena, const char *id, const char *hash);

/* Paths that a file of a checkpoint names: of other files, in the same directory or below. */

/* Reports whether a path stays in its directory: relative, not empty, without NUL, and without a component that is
 * empty, "." or "..". Links are the location's matter. */
bool inner_path(const char *path, size_t length);
