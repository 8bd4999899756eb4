/* The process that mounts for a confined server, which can neither mount, unmount nor start fusermount3.
 *
 * It is started before any source is opened, knows its mount point from then on, and holds nothing of the source's. It
 * mounts when the server asks, which is when the source is open: a source that cannot be opened never shows a mount.
 * Then it gives up what it no longer needs (with CAP_SYS_ADMIN; an ordinary user's has to start fusermount3 in the end,
 * which is a set-user-ID program), and waits for the server's requests: they name no path and no process. It ignores
 * the signals of the terminal, and ends with the server, also if that is killed. */
#pragma once

#include "fs/mount/own_mount.h"
#include "fs/mount/session_options.h"

struct mounter;

struct mounter_plan {
    const char *path;                  /* as the user named it */
    struct mountpoint_options checks;  /* of the mount point, when it is mounted */
    const struct mountpoint *prepared; /* a mount point that is made already; NULL: none */
    struct session_options options;    /* without `source` */
    bool passes_files;                 /* gives files to the kernel */
    pid_t program;                     /* to signal, and to kill when the server ends; 0: none */
};

/* Starts the process. Returns NULL with an error. Only for a process with one thread. */
struct mounter *mounter_start(const struct mounter_plan *plan, struct error *error);

/* The mount, once it is made. */
struct mounter_device {
    int device, hold; /* of /dev/fuse, and of the directory below (mountpoint.h), or -1; the caller closes both */
    const struct own_mount *made; /* lives as long as the mounter */
};

/* Prepares the mount point and mounts. `source` is the name of the source in `df` and mountinfo. */
bool mounter_mount(struct mounter *mounter, const char *source, struct mounter_device *ret_device, struct error *error);

/* Raises the window in which the kernel reads ahead, to `kib`. Only root's can. */
void mounter_raise_readahead(struct mounter *mounter, unsigned kib);

/* Gives the kernel a file that it reads by itself (passthrough.h), for the mount with this device. Returns its number,
 * or -1. */
int mounter_give(struct mounter *mounter, int device, int file);
void mounter_take_back(struct mounter *mounter, int device, int number);

/* Detaches the mount like own_mount_detach(). */
bool mounter_detach(struct mounter *mounter, enum detach how, struct error *error);

/* Sends the program a signal. */
void mounter_signal(struct mounter *mounter, int number);

/* Removes the directory as mountpoint_release() does, when nothing is mounted there any more and the sources are
 * closed; ends the process, and waits for it. NULL is allowed. */
void mounter_free(struct mounter *mounter);
