/* Hands fetched files of a model over to the cache of the hub's Python clients (formats/huggingface/hub_cache.h), which
 * then find them offline.
 *
 * A client takes every link of a snapshot for a complete file: a file gets its link after its blob has all bytes.
 * Source: huggingface_hub, file_download. */
#pragma once

#include "sources/location.h"

/* Where one revision of a model is kept. */
struct hub_cache_copy {
    const char *folder; /* of the model in the cache */
    const char *commit;
    struct arena *arena; /* of the caller, for its texts */
};

/* Prepares the copy of a revision; makes the folders that are missing. */
bool hub_cache_copy_begin(struct hub_cache_copy *copy, const struct location_snapshot *snapshot, struct arena *arena,
                          struct error *error);

/* Copies a file whose bytes are here, unless the cache has them, as the blob of that hash (location_blob()), and links
 * it into the snapshot as `path`. */
bool hub_cache_copy_file(const struct hub_cache_copy *copy, const char *path, const char *blob, struct source *source,
                         struct error *error);

/* Records which commit the revision is. Call it last. */
bool hub_cache_copy_end(const struct hub_cache_copy *copy, const char *revision, struct error *error);
