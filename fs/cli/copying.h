/* Copying files to disk: what it takes, the file that is being written (copying.c), and copies for the cache of the
 * hub's clients (hub_cache_copy.c). */
#pragma once

#include "fs/lib/output.h"
#include "fs/lib/paths.h"
#include "sources/location.h"

/* What a copy of several files takes, found before the first is written. */

struct copy_total {
    size_t n_files;
    uint64_t n_bytes;  /* of all files */
    uint64_t replaced; /* bytes of files at their places, each of which goes when its successor is complete */
    uint64_t largest_replaced;
};

/* Adds a file or directory of the tree that is to be copied to `destination`. Plans its files. */
void copy_total_add(struct copy_total *total, struct tree *tree, const struct node_attributes *attributes,
                    const char *destination);

/* Fails if the file system of `directory`, or of what is there of it, says that it has less room. */
bool copy_total_fits(const struct copy_total *total, const char *directory, struct error *error);

/* The file that a command is writing, which must not stay unfinished if a signal ends the command. */

/* Like output_open(), and has SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE remove the temporary name of the output, if
 * it has one. One output at a time; call unfinished_none() before it is finished or discarded. */
bool unfinished_open(struct output *output, const char *path, uint64_t size, mode_t mode, struct error *error);
void unfinished_none(void);

/* Hands fetched files of a model over to the cache of the hub's Python clients (formats/huggingface/hub_cache.h), which
 * then find them offline.
 *
 * A client takes every link of a snapshot for a complete file: a file gets its link after its blob has all bytes.
 * Source: huggingface_hub, file_download. */

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
