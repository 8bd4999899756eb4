/* A mount that is being served: the device, the worker threads, and the signals of the process.
 *
 * A session starts threads only inside session_serve(), so a process forks before it. */
#pragma once

#include "fs/mount/fuse_ops.h"
#include "fs/mount/own_mount.h"
#include "fs/mount/session_options.h"

#include <signal.h>

struct session;

/* Mounts at an absolute path, or takes over the mounted descriptor /dev/fd/N. Blocks the signals that session_serve()
 * waits for, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGCHLD, and ignores SIGPIPE. The path must outlive
 * the session. On failure returns NULL, with the signals as for a session. */
struct session *session_new(const struct served *served, const char *mountpoint, const struct session_options *options,
                            struct error *error);

/* Reports whether the process has the descriptors that a session needs besides those of its sources. Without them the
 * mount would answer nothing, or never end. */
bool session_has_descriptors(struct error *error);

/* The mount that the session has made, as long as the session exists. */
const struct own_mount *session_mount(const struct session *session);

/* Unmounts, unless that has happened already or session_serve() has failed, and frees the session. */
void session_free(struct session *session);

struct session_events {
    void (*ready)(void *context);                            /* called once, when the mount answers */
    void (*signalled)(void *context, const siginfo_t *info); /* called for one signal at a time */
    void *context;
};

/* Serves until the mount is detached and its last user has left. The events come on a thread of their own. On failure
 * the caller detaches the mount. */
bool session_serve(struct session *session, const struct session_events *events, struct error *error);
