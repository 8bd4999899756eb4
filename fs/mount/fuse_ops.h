/* The FUSE operations on a tree.
 *
 * Nothing is remembered between requests, and a node's number is its inode number, so that open, opendir and forget
 * have nothing to do. Content never changes: the kernel may keep attributes, names and pages for ever, or until a
 * source changes (watch.h). Every attribute sent anywhere is complete, since the kernel would cut a mapped file to a
 * size of 0. A read is answered in full or with an error: EIO, ESTALE if a remote object has changed, EINTR for an
 * interrupted reader that waits for a network.
 *
 * No worker waits: what needs a file that is not planned yet is handed to a waiting room, and reads beyond those that
 * may run at once are queued. So names and attributes are answered at once whatever is being planned or computed. A
 * listing waits for the files of its directory for LISTING_PATIENCE seconds at most; it then names those whose planning
 * takes longer, and who asks for such a name waits, or finds that it is absent.
 *
 * If a source is remote, a read first waits on a thread of remote_reads.h until its bytes are here, and is then
 * computed like any other. */
#pragma once

#include "fs/mount/read_queue.h"
#include "fs/mount/remote_reads.h"
#include "fs/mount/waiting_room.h"
#include "fs/mount/watch.h"
#include "fs/tree/read_ahead.h"

#include <fuse_lowlevel.h>
#include <semaphore.h>
#include <stdatomic.h>

/* The tree that is served, and its users. */
struct served {
    struct tree *tree; /* NULL for a server that has other operations, and nothing to watch */
    uid_t uid;
    gid_t gid; /* NO_GROUP: that of who mounts, which gets no more than everybody where the sources have another */
    mode_t umask;
    struct watch *watch; /* made by the session */
    bool allows_rdwr;    /* set by the session: who owns the files may open them for writing */
};

/* The user data of the operations. */
struct serving {
    const struct served *served;
    struct waiting_room *waiting;
    struct read_queue *reads;
    struct remote_reads *remote_reads;
    struct read_ahead *ahead;
    atomic_bool has_replied;
    sem_t answering; /* posted once: the kernel has the first reply, so there is a worker, and its limits are set */
};

void serving_begin(struct serving *serving, const struct served *served, size_t n_readers);

/* Once there are no workers any more. Ends all waits for remote bytes, for good. */
void serving_end(struct serving *serving);

extern const struct fuse_lowlevel_ops fuse_ops;
