/* Copying a virtual file to a descriptor, with all cores: for `wfs cat` and `wfs cp`. */
#pragma once

#include "fs/tree/vfile.h"

/* Hears of every part that has been written; called from any thread, one at a time. */
typedef void copy_progress(void *context, uint64_t n_bytes);

/* Writes the file to `fd`: anywhere in it at once where `at_offsets` is set (a regular file, from its start), in order
 * otherwise. `progress` may be NULL. */
bool copy_file(const struct vfile *file, int fd, bool at_offsets, copy_progress *progress, void *context, struct error *error);
