/* Where things are in the local hub cache (hub_cache.h), whether or not they exist. Paths are in the arena. */
#pragma once

#include "base/arena.h"

#define HUB_CACHE_PREFIX "models--"

const char *hub_cache_directory(struct arena *arena);

/* The folder of ORG/NAME or NAME. */
const char *hub_cache_folder(struct arena *arena, const char *id);

/* The path of the file with the bytes of a repository's blob of that hash; NULL if it is not there. */
const char *hub_cache_blob(struct arena *arena, const char *id, const char *hash);
