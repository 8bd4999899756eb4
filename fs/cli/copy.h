/* Reading a virtual file from its beginning to its end, with all cores. */
#pragma once

#include "fs/tree/vfile.h"

/* Hears of every part that has been written; called from any thread, one at a time. */
typedef void copy_progress(void *context, uint64_t n_bytes);

/* Writes the file to `fd` from its current offset on, in order: one thread writes, the others compute what comes next.
 * `progress` may be NULL. */
bool copy_file(const struct vfile *file, int fd, copy_progress *progress, void *context, struct error *error);

/* Gives all bytes of the file, piece after piece, to take(): from any thread, one at a time. Ends where it returns
 * false. */
typedef bool take_bytes(void *context, const void *bytes, size_t length, struct error *error);
bool take_file(const struct vfile *file, take_bytes *take, void *context, struct error *error);
