/* The list of files and the manifest of a source of an archive. */
#pragma once

#include "fs/lib/blobs.h"

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
