/* fusermount3, which mounts and unmounts for ordinary users. Its messages go into our errors instead of to stderr. */
#pragma once

#include "base/error.h"

#include <fuse_lowlevel.h>

/* Calls fuse_session_mount(), which starts fusermount3 if necessary. `words` gets the last line of its messages, or "".
 * Redirects stderr meanwhile, so only a process with one thread may call it. */
enum { FUSERMOUNT_WORDS = 256 };
bool fusermount_mount(struct fuse_session *fuse, const char *path, char words[FUSERMOUNT_WORDS]);

/* Unmounts by fusermount3, and waits for it; the error has its last line. Lazy as `umount -l`. */
bool fusermount_unmount(const char *path, bool lazy, struct error *error);
