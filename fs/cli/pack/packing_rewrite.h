/* Writing packs anew without the tensors that no list names any more, for `wfs pack --prune`. */
#pragma once

#include "fs/lib/blobs.h"

/* Rewrites the packs of an archive of which less than half is needed, and the lists and manifests that name them; then
 * replaces the index. What is no longer needed stays for index_prune(). The new packs are decoded and compared before.
 * Packs that are coded against a rewritten one name it, and are rewritten, too: if less than half of them all is
 * needed, else all stay. After a failure, the archive shows what it showed. */
bool packs_rewrite(struct blobs *blobs, const char *archive, size_t *ret_n_rewritten, struct error *error);
