/* The FUSE operations on a tree.
 *
 * Nothing is remembered between requests, and a node's number is its inode number, so that open, opendir and forget have nothing
 * to do. Content never changes: the kernel may keep attributes, names and pages for ever. Every attribute sent anywhere is
 * complete, since the kernel would cut a mapped file to a size of 0. A read is answered in full or with EIO. */
#pragma once

#include "fs/tree/tree.h"

#include <fuse_lowlevel.h>

/* What the operations get as their user data. */
struct served {
    struct tree *tree;
    uid_t uid;
    gid_t gid;
    mode_t umask;
};

extern const struct fuse_lowlevel_ops fuse_ops;
