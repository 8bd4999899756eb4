/* fusermount3, which mounts and unmounts for those who may not. What it says goes into our line instead of to stderr.
 */
#pragma once

#include "base/error.h"

#include <fuse_lowlevel.h>

/* Mounts, as fuse_session_mount(), which starts fusermount3 where that is needed. `words`, which may be empty, is what
 * that said last. Stderr is another one meanwhile: only for a process of one thread. */
enum { FUSERMOUNT_WORDS = 256 };
bool fusermount_mount(struct fuse_session *fuse, const char *path, char words[FUSERMOUNT_WORDS]);

bool fusermount_unmount(const char *path, bool lazy, struct error *error);
