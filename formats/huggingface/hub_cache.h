/* The local cache of the Hugging Face hub: models--ORG--NAME/{refs,snapshots,blobs}.
 *
 * A file in refs holds the revision that a branch stands for; snapshots/REVISION holds the files of a revision, as
 * symbolic links into blobs. The cache is found as huggingface_hub/constants.py finds it: HF_HUB_CACHE,
 * HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub; an empty variable
 * counts as none. Nothing is ever downloaded.
 *
 * A repository's folder may be anywhere; with LOCATION_INSIDE, its refs and snapshots are in it. */
#pragma once

#include "formats/location.h"

struct format;

/* The path to open for what the user called `path`: a snapshot, where that is the folder of a repository in a hub
 * cache, or ORG/NAME, ORG/NAME@REVISION or NAME and no such path exists; else `path`. NULL where there is no snapshot
 * to choose. A name that ends as the files of one of the formats do is taken for a file that is missing. */
const char *hub_cache_resolve(struct arena *arena, const char *path, const struct format *const *formats,
                              enum location_links links, struct error *error);

/* The snapshot of ORG/NAME or NAME in the cache, whatever lies at such a path; `revision` may be NULL. For names that a
 * file says: no other path is ever the answer. NULL where it is not such a name, or not there. */
const char *hub_cache_find(struct arena *arena, const char *id, const char *revision, enum location_links links,
                           struct error *error);

/* Returns the name of the model in a directory: the repository's NAME for a snapshot in a hub cache (*ret_is_snapshot),
 * else the directory's last component. Symbolic links are not resolved: the user chose their name.
 */
const char *hub_cache_model_name(struct arena *arena, const char *directory, bool *ret_is_snapshot);

/* Calls `each` with what every model in the cache is called, ORG/NAME or NAME, in no order. */
void hub_cache_each(void (*each)(void *context, const char *id), void *context);
