/* The directory of an archive (sources/archive/archive.h), for the one process that changes it.
 *
 * A blob gets its name, its SHA-256, once it is whole and on disk; the index, which names what is reachable, is
 * replaced last. A process that is killed at any point leaves the archive as it was, and perhaps blobs that no manifest
 * names. Paths are relative to the working directory. */
#pragma once

#include "base/buffer.h"
#include "sources/archive/archive.h"

#include <sys/stat.h>

struct blobs;

/* Takes the archive at a path for this process and its children alone. A directory that is no archive is refused. NULL
 * on failure. */
enum blobs_use {
    BLOBS_CREATE, /* a missing or empty directory becomes an archive; waits for others that change it */
    BLOBS_CHANGE, /* waits, too */
    BLOBS_PRUNE,  /* fails if another process changes the archive */
};
struct blobs *blobs_open(const char *path, enum blobs_use use, struct error *error);
void blobs_close(struct blobs *blobs); /* NULL is allowed */

/* Gets the status of the archive's directory. */
bool blobs_status(const struct blobs *blobs, struct stat *ret_status, struct error *error);

/* Begins, continues and ends a blob, one at a time. After a failure, and by blobs_drop(), it is removed. */
bool blobs_begin(struct blobs *blobs, struct error *error);
bool blobs_put(struct blobs *blobs, const void *bytes, size_t length, struct error *error);
bool blobs_finish(struct blobs *blobs, struct archive_blob *ret_blob, struct error *error);
void blobs_drop(struct blobs *blobs);

/* Writes a blob that is in memory. */
bool blobs_add(struct blobs *blobs, const void *bytes, size_t length, struct archive_blob *ret_blob,
               struct error *error);

/* Replaces the index. */
bool blobs_set_index(struct blobs *blobs, const void *bytes, size_t length, struct error *error);

/* Calls each() with every blob of the directory; removes one of them. */
typedef bool blobs_each(void *context, const struct digest *digest, uint64_t size, struct error *error);
bool blobs_list(struct blobs *blobs, blobs_each *each, void *context, struct error *error);
bool blobs_remove(struct blobs *blobs, const struct digest *digest, struct error *error);

/* Fails while another process reads the archive (archive_open()), whose index may be older than the newest. */
bool blobs_check_unread(struct blobs *blobs, struct error *error);

/* Drops the blobs' bytes from memory, so that the next reader gets them from the disk. */
bool blobs_forget(struct blobs *blobs, struct error *error);
