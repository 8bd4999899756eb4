/* A mount that is being served: the device, the worker threads, and the signals of the process.
 *
 * A session starts threads only inside session_serve(), so a process forks before it. */
#pragma once

#include "fs/mount/fuse_ops.h"
#include "fs/mount/mounter.h"
#include "fs/mount/session_options.h"

#include <signal.h>

struct session;

/* What is served: a mounted descriptor of /dev/fuse, and what is known of the mount. */
struct session_mount {
    int device;                   /* the session closes it */
    const char *path;             /* for messages; outlives the session, as all of these do */
    const struct own_mount *made; /* NULL: another process than our mounter mounted it */
    struct mounter *mounter;      /* NULL: no passthrough, and no larger window for reading ahead */
};

/* Loads a library that ending a thread needs. Call it outside of the sandbox. */
void session_load(void);

/* Blocks the signals that session_serve() waits for, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGCHLD,
 * and ignores SIGPIPE. Call it before a mount exists. */
void session_block_signals(void);

/* Makes a session on a mount. Returns NULL on failure; the device is closed then, too. */
struct session *session_new(const struct served *served, const struct session_mount *mount,
                            const struct session_options *options, struct error *error);

/* Reports whether the process has the descriptors that a session needs besides those of its sources. Without them the
 * mount would answer nothing, or never end. */
bool session_has_descriptors(struct error *error);

/* Closes the device, and frees the session. */
void session_free(struct session *session);

struct session_events {
    void (*ready)(void *context);                            /* called once, when the mount answers */
    void (*signalled)(void *context, const siginfo_t *info); /* called for one signal at a time */
    void *context;
};

/* Serves until the mount is detached and its last user has left. The events come on a thread of their own. On failure
 * the caller detaches the mount. */
bool session_serve(struct session *session, const struct session_events *events, struct error *error);
