/* Reading a virtual file, or a range of it, from its beginning to its end, with all cores. */
#pragma once

#include "fs/tree/vfile.h"

/* Called after each piece with its size: from any thread, one at a time, while others wait. */
typedef void copy_progress(void *context, uint64_t n_bytes);

/* Writes the file to `fd` from its current offset on, in order: one thread writes while the others compute the next
 * pieces. On failure, a part may have been written. `progress` may be NULL. */
bool copy_file(const struct vfile *file, int fd, copy_progress *progress, void *context, struct error *error);

/* Like copy_file(); `watch` is called after each piece, like copy_progress, with the bytes that are written so far. If
 * it returns false, the copy fails with the code ECANCELED. */
typedef bool copy_watch(void *context, uint64_t n_written);
bool copy_watched(const struct vfile *file, int fd, copy_watch *watch, void *context, struct error *error);

/* Like copy_file(), for the range [offset, offset + length), which is inside the file. */
bool copy_range(const struct vfile *file, uint64_t offset, uint64_t length, int fd, struct error *error);

/* Passes all bytes of the file to take(), piece after piece in order: from any thread, one at a time. Fails with its
 * error if it returns false. */
typedef bool take_bytes(void *context, const void *bytes, size_t length, struct error *error);
bool take_file(const struct vfile *file, take_bytes *take, void *context, struct error *error);

/* Like take_file(), for the range [offset, offset + length), which is inside the file. */
bool take_range(const struct vfile *file, uint64_t offset, uint64_t length, take_bytes *take, void *context,
                struct error *error);

/* Writing a virtual file so that it shares disk blocks with its sources (FICLONERANGE; XFS, Btrfs): what is stored in a
 * source at the same place of a block needs neither time nor space. All else is written as usual, so that the file has
 * the bytes of copy_file() in any case.
 *
 * Source: man 2 ioctl_ficlonerange. */

struct reflinked {
    uint64_t n_shared; /* bytes */
    int reason;        /* the errno of the file system, if it refused to share; 0: it did not */
    bool is_small;     /* the file is smaller than a block, and has none to share */
};

/* Writes the file to `fd`, an empty regular file. Fails, like copy_file(), if a source has changed. */
bool reflink_file(const struct vfile *file, int fd, copy_progress *progress, void *context,
                  struct reflinked *ret_reflinked, struct error *error);
