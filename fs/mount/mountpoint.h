/* Mount points: the directory a tree is shown at, what is mounted there already, and taking it away. */
#pragma once

#include "base/error.h"

#include <sys/types.h>

struct mountpoint {
    char *path;  /* absolute, or /dev/fd/N: a descriptor of /dev/fuse that somebody else has mounted */
    bool made;   /* by us: it is removed at the end */
    ino_t inode; /* of the directory that we made */
    bool marked; /* and it says so */
    int hold;    /* on the directory (hold.h), or -1 */
};

struct mountpoint_options {
    bool nonempty; /* files in it may be hidden */
    bool replace;  /* a wfs that is mounted there, alive or dead, is taken away first */
};

/* Finds out whether `path` can be mounted on, and makes it if it is missing. */
bool mountpoint_prepare(struct mountpoint *mountpoint, const char *path, const struct mountpoint_options *options,
                        struct error *error);

/* A new directory in `parent`, which is absolute, for a mount that only we use. Where we are killed, the next one that
 * is made there removes it. */
bool mountpoint_make_temporary(struct mountpoint *mountpoint, const char *parent, struct error *error);

/* Once nothing is mounted there any more, and the sources are closed: removes the directory if it was made by us, and
 * frees what was made. A mount point that is all zeros is allowed. */
void mountpoint_release(struct mountpoint *mountpoint);

/* Reports whether the directory is gone: the wfs that was there before may have removed it after we looked. */
bool mountpoint_vanished(const struct mountpoint *mountpoint);

/* Reports whether it stands for a descriptor. */
bool mountpoint_is_descriptor(const char *path);

enum detach {
    DETACH_IDLE, /* only if nobody uses it, or just for a moment, as programs that look at every mount do */
    DETACH_LAZY, /* at once; its users finish undisturbed */
    DETACH_FORCE /* at once, and its users get errors, where we may; otherwise as DETACH_LAZY */
};

/* Takes the mount at an absolute path away; by fusermount3 where we may not do it ourselves. */
bool mountpoint_detach(const char *path, enum detach how, struct error *error);

/* For `wfs umount`: detaches a wfs, alive or dead, and removes the directory if a wfs had made it. With DETACH_IDLE
 * waits until the server has closed its sources, for some seconds; a server that is stopped is an error then. */
bool mountpoint_clear(const char *path, enum detach how, struct error *error);

enum mount_state { MOUNT_SERVED, MOUNT_STOPPED, MOUNT_DEAD };

/* Who serves the wfs that is mounted at an absolute path. */
struct mount_server {
    pid_t pid; /* 0: not known, as of other users' processes */
    enum mount_state state;
};
struct mount_server mountpoint_server(const char *path);

/* Calls `emit` for each place where a wfs is mounted, with what it shows. */
void mountpoint_each(void (*emit)(void *context, const char *path, const char *source), void *context);
