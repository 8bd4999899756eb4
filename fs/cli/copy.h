/* Copying a virtual file to a descriptor, with all cores: for `wfs cat` and `wfs cp`. */
#pragma once

#include "fs/tree/vfile.h"

/* Hears of every part that has been written; called from any thread, one at a time. */
typedef void copy_progress(void *context, uint64_t n_bytes);

/* Writes the file to `fd` from its current offset on, in order: one thread writes, the others compute what comes next.
 * `progress` may be NULL. */
bool copy_file(const struct vfile *file, int fd, copy_progress *progress, void *context, struct error *error);
