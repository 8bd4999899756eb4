/* Mount points: the directory that shows a tree, the mount that is there already, and unmounting. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct mountpoint {
    char *path;  /* absolute, or /dev/fd/N: a descriptor of /dev/fuse that another process has mounted */
    bool made;   /* wfs made the directory: it is removed at the end */
    ino_t inode; /* of that directory; 0: unknown */
    bool marked; /* the directory has an extended attribute that says so */
    pid_t maker; /* the process in that attribute */
    int hold;    /* on the directory (hold.c), or -1 */
};

struct mountpoint_options {
    bool nonempty; /* the mount may hide files in the directory */
    bool replace;  /* first detach a wfs that is mounted there, alive or dead */
};

/* Checks that `path` can be mounted on, makes the directory if it is missing, and takes a hold of it. */
bool mountpoint_prepare(struct mountpoint *mountpoint, const char *path, const struct mountpoint_options *options,
                        struct error *error);

/* Makes a directory in `parent`, an absolute path, for a mount that only this process uses. First removes those that
 * killed processes of this user left there. */
bool mountpoint_make_temporary(struct mountpoint *mountpoint, const char *parent, struct error *error);

/* Removes the directory if a wfs made it and no other has adopted it, and frees the mount point. Call it when nothing
 * is mounted there any more and the sources are closed. A mount point of zeros is allowed. */
void mountpoint_release(struct mountpoint *mountpoint);

/* Reports whether the directory is gone: the previous wfs may have removed it after mountpoint_prepare(). */
bool mountpoint_vanished(const struct mountpoint *mountpoint);

/* Reports whether the path stands for a descriptor: /dev/fd/N. */
bool mountpoint_is_descriptor(const char *path);

enum detach {
    DETACH_IDLE, /* only if no process uses it for longer than a second, as programs that look at every mount do */
    DETACH_LAZY, /* at once; its users can finish */
    DETACH_FORCE /* at once, and its users get errors; like DETACH_LAZY without the right to do so */
};

/* Detaches the mount at an absolute path, by fusermount3 for ordinary users. The error names a process that uses it. */
bool mountpoint_detach(const char *path, enum detach how, struct error *error);

/* For `wfs umount`: detaches a wfs of this user, for root of any user, alive or dead, and removes a directory that a
 * wfs made. DETACH_IDLE waits 5 s at most for the server to close its sources; then a stopped server is an error. */
bool mountpoint_clear(const char *path, enum detach how, struct error *error);

/* Detaches the wfs that is mounted at the path if its server has died, and removes a directory that a wfs made. Does
 * nothing else: another wfs may serve there. */
void mountpoint_clear_dead(const char *path);

enum mount_state { MOUNT_SERVED, MOUNT_STOPPED, MOUNT_DEAD };

/* The process that serves a mount of wfs. Only a process that is known is MOUNT_STOPPED. */
struct mount_server {
    pid_t pid; /* 0: unknown, as other users' processes are */
    enum mount_state state;
};
/* Finds the server of the wfs that is mounted at an absolute path; waits a second at most for an unknown one. */
struct mount_server mountpoint_server(const char *path);

/* Calls `emit` for each mount of a wfs with its absolute path and the name of its source. */
void mountpoint_each(void (*emit)(void *context, const char *path, const char *source), void *context);

/* Holds: a server's shared lock on the directory under its mount, from before it mounts until its sources are closed.
 * The lock tells other processes whether the server still runs, however it ended, without touching the mount. If the
 * directory cannot be opened or locked, there is no hold, and no process waits. */

/* Takes a hold, beside any others; waits a second at most for a hold_take_over(). Returns a descriptor to close, or
 * -1. */
int hold_take(const char *path);

/* Waits `milliseconds` at most until no process holds the directory. Returns a descriptor that prevents holds until it
 * is closed, or -1 with errno, which is EWOULDBLOCK if a process still holds it. */
int hold_take_over(const char *path, int milliseconds);

/* Reports whether the path, not followed if a link, still names the held directory. */
bool hold_is_of(int hold, const char *path);
