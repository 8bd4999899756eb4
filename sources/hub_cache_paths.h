/* Paths in the local hub cache (hub_cache.h), whether or not they exist, in the arena. */
#pragma once

#include "base/arena.h"

#define HUB_CACHE_PREFIX "models--"

const char *hub_cache_directory(struct arena *arena);

/* Returns the folder of ORG/NAME or NAME. */
const char *hub_cache_folder(struct arena *arena, const char *id);

/* Returns the path of the blob with that hash in a repository; NULL if the file does not exist. */
const char *hub_cache_blob(struct arena *arena, const char *id, const char *hash);
