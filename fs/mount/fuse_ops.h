/* The FUSE operations on a tree.
 *
 * Nothing is remembered between requests, and a node's number is its inode number, so that open, opendir and forget have nothing
 * to do. Content never changes: the kernel may keep attributes, names and pages for ever, or until a source changes (watch.h).
 * Every attribute sent anywhere is complete, since the kernel would cut a mapped file to a size of 0. A read is answered in full
 * or with EIO. */
#pragma once

#include "fs/mount/watch.h"

#include <fuse_lowlevel.h>

/* What the operations get as their user data. */
struct served {
    struct tree *tree; /* NULL for a server that has other operations, and nothing to watch */
    uid_t uid;
    gid_t gid; /* NO_GROUP: that of who mounts, which gets no more than everybody where the sources have another */
    mode_t umask;
    struct watch *watch; /* made by the session */
};

extern const struct fuse_lowlevel_ops fuse_ops;
