/* The local cache of the Hugging Face hub: models--ORG--NAME/{refs,snapshots,blobs}.
 *
 * A file in refs holds the revision that a branch stands for; snapshots/REVISION holds the files of a revision, as
 * symbolic links into blobs. The cache is found as huggingface_hub/constants.py finds it: HF_HUB_CACHE,
 * HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub; an empty variable
 * counts as none. Nothing is ever downloaded.
 *
 * A repository's folder may be anywhere; with LOCATION_INSIDE, its refs and snapshots are in it. */
#pragma once

#include "sources/location.h"

struct format;

/* Returns the path to open for the user's `path`: the snapshot if it names a repository's folder in a hub cache, or, if
 * there is no such path, if it is ORG/NAME, ORG/NAME@REVISION or NAME; else `path`. NULL, with an error, if there is no
 * snapshot to choose. A name with an extension of one of the formats counts as a missing file. */
const char *hub_cache_resolve(struct arena *arena, const char *path, const struct format *const *formats,
                              enum location_links links, struct error *error);

/* Returns the snapshot of ORG/NAME or NAME in the cache, even if such a path exists; `revision` may be NULL. For names
 * from files: the answer is always in the cache. NULL, with an error, if the name is not a repository's or not in the
 * cache. */
const char *hub_cache_find(struct arena *arena, const char *id, const char *revision, enum location_links links,
                           struct error *error);

/* Returns the name of the model in a directory: the repository's NAME for a snapshot in a hub cache (*ret_is_snapshot),
 * else the directory's last component. Symbolic links are not resolved: the user chose their name.
 */
const char *hub_cache_model_name(struct arena *arena, const char *directory, bool *ret_is_snapshot);
