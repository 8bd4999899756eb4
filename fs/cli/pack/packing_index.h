/* The index of an archive, while it is changed: which manifest each name has. */
#pragma once

#include "fs/lib/blobs.h"
#include "text/json_write.h"

struct index_member {
    const char *name;
    struct archive_blob manifest;
};

/* Puts a descriptor; with a name, that of a member's manifest. */
void index_put_descriptor(struct json_writer *writer, const char *key, const char *type,
                          const struct archive_blob *blob, const char *name);

/* Replaces the index by one of these members. */
bool index_write(struct blobs *blobs, const struct index_member *members, size_t n_members, struct error *error);

/* Takes a source out of an archive, whose blobs stay until index_prune(). Fails if there is none of that name. */
bool index_remove(struct blobs *blobs, const char *archive, const char *name, struct error *error);

/* Removes the blobs that no manifest needs. Fails, and removes nothing, if a manifest cannot be read, or while another
 * process reads the archive. Adds what was removed to *pruned. */
struct pruned {
    size_t n_blobs;
    uint64_t n_bytes;
};
bool index_prune(struct blobs *blobs, const char *archive, struct pruned *pruned, struct error *error);
