/* Removing the originals of packed sources, for `wfs pack --replace`.
 *
 * Processes of their own, each in a sandbox of its own, do the work: one packs, a fresh one reads every file back from
 * the disk through the archive, and the last removes what is as it was when it was scanned. A kill at any point leaves
 * each file whole in the source, in the archive, or in both. */
#pragma once

#include "fs/cli/pack/packing.h"

/* Fails unless the archive shows every entry of the scan, and every file with the SHA-256 that was read from the
 * original. For a process that has not written the archive. */
bool replace_check(const char *archive, const struct scan *scan, struct error *error);

struct removed {
    uint64_t n_files, n_bytes;
    uint64_t n_kept; /* files and links that stay, each of which was reported */
};

/* Removes the entries of a scan. A file stays that has changed, is open for writing, has a link elsewhere, or is on
 * another device than the source; a folder stays that is not empty. */
void replace_remove(const struct scan *scan, struct removed *removed);
