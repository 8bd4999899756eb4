#include "fs/mount/passthrough.h"

#include "base/lock.h"
#include "remote/store.h"
#include "remote/store_directory.h"
#include "sources/source.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the kernel's fuse.h has from Linux 6.9 on. */
enum { REPLY_PASSTHROUGH = 1 << 7 };

enum decision { UNDECIDED, NEVER, WHERE_POSSIBLE };

/* A file that has been opened. */
struct backing {
    node_id id;
    int number; /* of the source in the kernel; 0: the file is read as usual */
};

struct passthrough {
    struct tree *tree;
    struct passthrough_kernel kernel;
    const struct negotiation *negotiation;
    atomic_int decision; /* enum decision; ends as one of the last two */
    struct lock lock;
    struct backing backings[PASSTHROUGH_MOST];
    size_t n_backings;
};

struct passthrough *passthrough_new(struct tree *tree, const struct passthrough_kernel *kernel,
                                    const struct negotiation *negotiation)
{
    struct passthrough *passthrough = memory_alloc(sizeof *passthrough);
    *passthrough =
        (struct passthrough){.tree = tree, .kernel = *kernel, .negotiation = negotiation, .lock = LOCK_INITIALIZER};
    atomic_init(&passthrough->decision, tree != NULL ? UNDECIDED : NEVER);
    return passthrough;
}

void passthrough_free(struct passthrough *passthrough)
{
    lock_destroy(&passthrough->lock);
    free(passthrough);
}

/* Gives a file to the kernel. Returns its number, or -1. */
static int give(const struct passthrough *passthrough, int descriptor)
{
    return passthrough->kernel.give(passthrough->kernel.context, passthrough->kernel.device, descriptor);
}

/* Reports whether the kernel takes a file. */
static bool is_taken(const struct passthrough *passthrough, int descriptor)
{
    int number = give(passthrough, descriptor);
    if (number > 0)
        passthrough->kernel.take_back(passthrough->kernel.context, passthrough->kernel.device, number);
    return number > 0;
}

/* Reports whether the kernel takes files of the store, which may get sealed ones. */
static bool takes_sealed(const struct passthrough *passthrough)
{
    const char *directory = tree_keeps(passthrough->tree) ? store_directory() : NULL;
    int store = directory != NULL ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int tag = store >= 0 ? openat(store, "CACHEDIR.TAG", O_RDONLY | O_CLOEXEC) : -1;
    bool taken = tag >= 0 && is_taken(passthrough, tag);
    if (store >= 0)
        close(store);
    if (tag >= 0)
        close(tag);
    return taken;
}

/* Reports whether passthrough pays in this mount and works: for sealed files, or the largest source. In a pipeline that
 * is a small file: its weights are in branches that may not be open yet. */
static bool is_worthwhile(const struct passthrough *passthrough)
{
    const struct source *largest = tree_largest_whole(passthrough->tree);
    if (!passthrough->negotiation->has_passthrough)
        return false;
    if (takes_sealed(passthrough))
        return true;
    return largest != NULL &&
           (source_size(largest) >= PASSTHROUGH_WORTHWHILE || tree_has_branches(passthrough->tree)) &&
           is_taken(passthrough, source_descriptor(largest));
}

static bool may_pass(struct passthrough *passthrough)
{
    int decision = atomic_load(&passthrough->decision);
    if (decision != UNDECIDED)
        return decision == WHERE_POSSIBLE;
    lock_take(&passthrough->lock);
    if (atomic_load(&passthrough->decision) == UNDECIDED)
        atomic_store(&passthrough->decision, is_worthwhile(passthrough) ? WHERE_POSSIBLE : NEVER);
    decision = atomic_load(&passthrough->decision);
    lock_drop(&passthrough->lock);
    return decision == WHERE_POSSIBLE;
}

/* Returns the number of a file in the kernel, which holds it until the mount ends; 0: none, ever. The caller has the
 * lock. */
static int find_backing(struct passthrough *passthrough, node_id id, int descriptor)
{
    for (size_t i = 0; i < passthrough->n_backings; i++)
        if (passthrough->backings[i].id == id)
            return passthrough->backings[i].number;
    if (passthrough->n_backings == PASSTHROUGH_MOST)
        return 0;
    int number = descriptor >= 0 ? give(passthrough, descriptor) : 0;
    passthrough->backings[passthrough->n_backings++] = (struct backing){id, number > 0 ? number : 0};
    return number > 0 ? number : 0;
}

enum opening passthrough_open(struct passthrough *passthrough, node_id id, struct origin *ret_origin, int *ret_backing)
{
    struct whole_file whole;
    if (!may_pass(passthrough))
        return OPENED_BY_KERNEL;
    if (!tree_whole_file(passthrough->tree, id, &whole))
        return OPENED_CACHED;
    *ret_origin = whole.origin;
    lock_take(&passthrough->lock);
    *ret_backing = find_backing(passthrough, id, whole.descriptor);
    lock_drop(&passthrough->lock);
    return *ret_backing > 0 ? OPENED_WHOLE : OPENED_CACHED;
}

struct passthrough_reply passthrough_reply(int backing, int flags)
{
    uint32_t how = REPLY_PASSTHROUGH | FOPEN_NOFLUSH | (flags & O_DIRECT ? FOPEN_DIRECT_IO : 0);
    return (struct passthrough_reply){.flags = how, .backing = backing};
}
