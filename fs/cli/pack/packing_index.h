/* The index of an archive, while it is changed: which manifest each name has. */
#pragma once

#include "fs/lib/blobs.h"
#include "sources/archive/files.h"
#include "text/json_write.h"

struct index_member {
    const char *name;
    struct archive_blob manifest;
};

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

/* The list of files and the manifest of a source of an archive. */

/* Packs that lists may name by their number here. The readers are open. */
struct pack_table {
    const struct archive_blob *blobs;
    struct pack *const *readers;
    size_t count;
};

/* Writes the list and the manifest of a source, whose layers are the packs that the list names, in that order, and the
 * packs that their tensors are coded against. Gives the list's segments the numbers of the manifest, and adds the
 * bytes of the list to *n_written. */
bool manifest_write(struct blobs *blobs, struct files *files, const struct pack_table *packs,
                    struct archive_blob *ret_manifest, uint64_t *n_written, struct error *error);

/* The list of files of a source that is packed again: what is new takes the place of what was in the archive under that
 * path, or below it; the rest stays. */

/* Returns the merged list; the caller frees it. `packs` has the new numbers of the old list's packs; `fresh` uses the
 * new ones. With `keeps_folders`, folders of both lists have the mode and time of the old one. */
struct files *merge_lists(const struct files *old, const uint32_t *packs, const struct files *fresh,
                          bool keeps_folders);

/* Returns numbers that are not set, UINT32_MAX, for as many things; the caller frees them. */
uint32_t *merge_numbers(size_t count);
