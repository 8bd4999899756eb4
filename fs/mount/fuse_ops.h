/* The FUSE operations on a tree.
 *
 * A node's number is its inode number, and no state is kept for open files or known names, so opendir and forget have
 * nothing to do, nor has open, except in a mount where the kernel reads some files by itself (passthrough.h). Content
 * never changes: the kernel may keep attributes, names and pages forever, or until a source changes (watch.h). Every
 * reply with attributes has all of them, since the kernel would cut a mapped file to a size of 0. A read is answered in
 * full or with an error: EIO, ESTALE if a remote object has changed, EINTR for an interrupted reader that waits for a
 * network, ENOMEM if memory runs out.
 *
 * No worker waits, as long as threads and memory can be had: requests that need an unplanned file go to a waiting room,
 * and reads over the limit are queued. So plans and reads never delay other names and attributes. A listing waits
 * LISTING_PATIENCE at most for the files of its directory, and then also names those that are still being
 * planned; looking up such a name waits, and may find that the file is absent.
 *
 * If a source is remote, a read first waits on a thread of waits.h for its bytes, and is then computed like any
 * other. */
#pragma once

#include "fs/mount/negotiation.h"
#include "fs/mount/passthrough.h"
#include "fs/mount/session_options.h"
#include "fs/mount/waiting_room.h"
#include "fs/mount/watch.h"
#include "fs/tree/read_ahead.h"
#include "fs/tree/waits.h"

#include <fuse_lowlevel.h>
#include <semaphore.h>
#include <stdatomic.h>

/* The tree that is served, and its users. */
struct served {
    struct tree *tree; /* NULL only for servers with operations of their own: nothing is watched */
    uid_t uid;
    gid_t gid; /* NO_GROUP: this process's, with no more permissions than others have if the sources' group differs */
    mode_t umask;
    struct only only;                /* what is listed */
    struct watch *watch;             /* made by the session; NULL without a tree */
    struct passthrough *passthrough; /* made by the session */
    bool allows_rdwr;                /* set by the session: the owner may open files for writing; writes fail */
};

/* The user data of the operations. */
struct serving {
    const struct served *served;
    struct negotiation negotiation; /* made by the session */
    struct waiting_room *waiting;
    struct read_queue *reads;
    struct waits *remote_reads;
    struct read_ahead *ahead;
    atomic_bool has_replied;
    sem_t answering; /* posted once, after the first reply: a worker runs, and the kernel knows our limits */
};

/* Fills in `serving` for at most `n_readers` reads at once; `served` must outlive it. */
void serving_begin(struct serving *serving, const struct served *served, size_t n_readers);

/* Call it after the last worker has ended. Ends all waits for remote bytes in this process, for good. */
void serving_end(struct serving *serving);

extern const struct fuse_lowlevel_ops fuse_ops;

/* The operations that would write, all answered with EROFS. The kernel refuses them by itself on a mount that is `ro`;
 * these refuse them on a mount that another process made, that root remounted, or that has -o allow_rdwr. The arguments
 * are those of struct fuse_lowlevel_ops. */

void refuse_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *status, int to_set, struct fuse_file_info *fi);
void refuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void refuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void refuse_removal(fuse_req_t req, fuse_ino_t parent, const char *name);
void refuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void refuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
                   unsigned flags);
void refuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name);
void refuse_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi);

/* The kernel has put the bytes of a write into its pages of the file already; it is told to forget them. */
void refuse_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
                  struct fuse_file_info *fi);

void refuse_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags);
void refuse_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);
void refuse_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, struct fuse_file_info *fi);
