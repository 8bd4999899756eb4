/* What is done to packs after the run that wrote them: they are checked (packing_check.c) and written anew
 * (packing_rewrite.c), and their originals are removed (packing_replace.c). */
#pragma once

#include "fs/cli/pack/packing.h"
#include "fs/lib/blobs.h"
#include "sources/archive/pack.h"

/* Checking packs of earlier runs before their tensors are used again, and those that were written anew. */

/* Decodes every tensor of a pack, several at once, and compares its SHA-256. Errors name `archive`. */
bool packing_check(struct pack *pack, const char *archive, struct error *error);

/* Reports whether the bytes of a blob have that SHA-256. */
bool packing_check_blob(const struct source *blob, const struct digest *digest);

/* Writing packs anew without the tensors that no list names any more, for `wfs pack --prune`. */

/* Rewrites the packs of an archive of which less than half is needed, and the lists and manifests that name them; then
 * replaces the index. What is no longer needed stays for index_prune(). The new packs are decoded and compared before.
 * Packs that are coded against a rewritten one name it, and are rewritten, too: if less than half of them all is
 * needed, else all stay. After a failure, the archive shows what it showed. */
bool packs_rewrite(struct blobs *blobs, const char *archive, size_t *ret_n_rewritten, struct error *error);

/* Removing the originals of packed sources, for `wfs pack --replace`.
 *
 * Processes of their own, each in a sandbox of its own, do the work: one packs, a fresh one reads every file back from
 * the disk through the archive, and the last removes what is as it was when it was scanned. A kill at any point leaves
 * each file whole in the source, in the archive, or in both. */

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
