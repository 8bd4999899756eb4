/* Writing a virtual file so that it shares disk blocks with its sources (FICLONERANGE; XFS, Btrfs): what is stored in a
 * source at the same place of a block needs neither time nor space. All else is written as usual, so that the file has
 * the bytes of copy_file() in any case.
 *
 * Source: man 2 ioctl_ficlonerange. */
#pragma once

#include "fs/lib/copy.h"

struct reflinked {
    uint64_t n_shared; /* bytes */
    int reason;        /* the errno of the file system, if it refused to share; 0: it did not */
    bool is_small;     /* the file is smaller than a block, and has none to share */
};

/* Writes the file to `fd`, an empty regular file. Fails, like copy_file(), if a source has changed. */
bool reflink_file(const struct vfile *file, int fd, copy_progress *progress, void *context,
                  struct reflinked *ret_reflinked, struct error *error);
