/* Files that the kernel reads from their sources by itself: FUSE passthrough, from Linux 6.9 on.
 *
 * A whole file (tree_whole_file()) needs no server: one that shows a source as it is, or one that is sealed in the
 * store. The kernel gets the descriptor of that file on disk when the virtual file is opened, and reads and maps it
 * itself, for a tenth of the processor time of a first read through the server and a third of a second one, without a
 * second copy in memory. It costs the shortcut of all other files: the kernel must ask the server about every open (16
 * microseconds), where otherwise one ENOSYS ends these requests. So it is only used in a mount that may show a source
 * of PASSTHROUGH_WORTHWHILE bytes or keeps computed files, and there for all whole files.
 *
 * It works if the process that gives the files has CAP_SYS_ADMIN in the first user namespace, and the file on disk is
 * on a file system that is not stacked on others, as overlayfs is. The first open of a mount tries it, and where it
 * does not work nothing differs from a kernel without it.
 *
 * The kernel refuses to open one inode both ways at a time, so a file has one way for the life of the mount: a file
 * that is sealed after its first open is read from the server until the next mount.
 *
 * - An open with O_DIRECT also names the source, but its reads come to the server, for any offset and length.
 * - A file is not opened once its source has changed (EIO). What was opened before shows the source as it is then: the
 *   kernel reads the file without asking wfs, and wfs cannot stop it. A sealed file keeps its bytes.
 * - A mount whose files can be opened for writing has none, since the kernel would open the source for writing.
 *
 * Source: fs/fuse/passthrough.c, backing.c and iomode.c, and include/uapi/linux/fuse.h of Linux 6.18. The numbers of
 * the protocol are here because the headers of Debian 12 lack them, and libfuse before 3.17 the functions. */
#pragma once

#include "fs/mount/negotiation.h"
#include "fs/tree/tree.h"

#define PASSTHROUGH_WORTHWHILE (UINT64_C(16) << 20)
enum { PASSTHROUGH_MOST = 256 }; /* files that the kernel holds open for a mount; others are read as usual */

struct passthrough;

/* How the kernel is given files: the server itself has no right to do so. */
struct passthrough_kernel {
    int device;                                       /* of the mount */
    int (*give)(void *context, int device, int file); /* returns the kernel's number of the file, or -1 */
    void (*take_back)(void *context, int device, int number);
    void *context;
};

/* Makes the state of a mount, for what is agreed with its kernel by the first open. `negotiation` must outlive it.
 * Nothing is asked of the kernel before the first open. */
struct passthrough *passthrough_new(struct tree *tree, const struct passthrough_kernel *kernel,
                                    const struct negotiation *negotiation);
void passthrough_free(struct passthrough *passthrough);

/* How a file is opened. */
enum opening {
    OPENED_BY_KERNEL, /* here and in the whole mount: the kernel need not ask again */
    OPENED_CACHED,    /* the kernel caches what it reads from the server */
    OPENED_WHOLE,     /* the kernel reads the file on disk */
};

/* Says how to open a file, always the same way. OPENED_WHOLE: *ret_origin is that of the file, which the caller must
 * not let be opened if the origin has changed, and *ret_backing the kernel's number of the file on disk. */
enum opening passthrough_open(struct passthrough *passthrough, node_id id, struct origin *ret_origin, int *ret_backing);

/* The reply to an open with OPENED_WHOLE, after its header. `flags` are those of open(). */
struct passthrough_reply {
    uint64_t handle;
    uint32_t flags;
    int32_t backing;
};
struct passthrough_reply passthrough_reply(int backing, int flags);
